/* What a message about the host says: one request, by its size. */
#include "../util/unit.h"

#include "explain/host.h"
#include "known.h"

static void first(const char *log, const char *cause, double least)
{
	struct knowledge *k = known_shipped();
	struct explanation e = known_explain(k, log);
	struct votes v = {0};
	struct str words = {0};

	assert_int_equal(e.count, 1);
	host_vote(&e.messages[0], &v, &words);
	assert_true(words.length > 10);
	if (cause) {
		assert_string_equal(v.list[0].cause, cause);
		assert_true(v.list[0].confidence >= least);
	} else {
		assert_int_equal(v.count, 0);
	}
	str_free(&words);
	explain_fini(&e);
	knowledge_free(k);
}

static void test_one_request(void **state)
{
	first(
	    "MemoryError: Unable to allocate 29.8 GiB for an array with shape (1000000, 4000) and "
	    "data type float64\n",
	    "oversized-intermediate", 0.6);
	first("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4398046511104 "
	      "bytes\n",
	    "oversized-intermediate", 0.8);
	first("memory allocation of 4096 bytes failed\n", NULL, 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
