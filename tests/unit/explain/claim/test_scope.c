/* Whose memory a message says ran out. */
#include "../../util/unit.h"

#include "explain/claim/scope.h"

static void test_scopes(void **state)
{
	static const struct {
		enum scope scope;
		const char *text;
	} texts[] = {
	    {SCOPE_REQUEST, "acme: memory limit for query exceeded"},
	    {SCOPE_REQUEST, "Query exceeded the node's limit"},
	    {SCOPE_REQUEST, "ExternalSorter[0] wanted 5 MB more"},
	    {SCOPE_REQUEST, "sort-limited: memory budget exceeded"},
	    {SCOPE_REQUESTS, "[in_flight_requests] Data too large"},
	    {SCOPE_STORE, "acme: the cache is full"},
	    {SCOPE_START, "cannot allocate memory for the buffer pool"},
	    {SCOPE_WEIGHTS, "not enough memory to load the model"},
	    {SCOPE_LIMIT, "the container's memory limit is too low"},
	    /* A limit that is too low says more than what it is for. */
	    {SCOPE_LIMIT, "Query exceeded: memory limit too low"},
	    /* In the middle of a word there is no phrase. */
	    {SCOPE_UNKNOWN, "out of memory: preload model x, reload model y"},
	    {SCOPE_UNKNOWN, "out of memory"},
	    {SCOPE_UNKNOWN, ""},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (scope_read(texts[i].text) != texts[i].scope)
			fail_msg("%s: %d", texts[i].text, (int)scope_read(texts[i].text));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_scopes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
