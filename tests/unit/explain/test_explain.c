/* The whole explanation, from a stream and from memory; the same result; and unreadable input. */
#include "../util/unit.h"

#include <errno.h>

#include "known.h"

static const char log_text[] =
    "2026-05-01 10:00:00 CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total "
    "capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB cached)\n";

static void test_both_ways(void **state)
{
	struct knowledge *k = known_shipped();
	struct explanation a = known_explain(k, log_text), b;
	FILE *in = fmemopen((void *)log_text, sizeof(log_text) - 1, "r");

	assert_int_equal(explain_stream(in, k, &b, NULL), 0);
	fclose(in);
	assert_int_equal(a.count, 1);
	assert_int_equal(b.count, 1);
	assert_string_equal(a.messages[0].text, b.messages[0].text);
	assert_int_equal(a.verdict.cause, b.verdict.cause);
	assert_int_equal(a.lines, 1);
	assert_int_equal(b.lines, 1);
	explain_fini(&a);
	explain_fini(&a); /* twice is no mistake */
	explain_fini(&b);
	knowledge_free(k);
	(void)state;
}

static void test_unreadable(void **state)
{
	struct knowledge *k = knowledge_new();
	struct explanation e;
	struct err err = {""};
	FILE *in = fopen("/", "r");

	assert_true(explain_stream(in, k, &e, &err) < 0);
	assert_non_null(strstr(err.text, "cannot read the log"));
	fclose(in);
	knowledge_free(k);
	(void)state;
}

/* No known message: the verdict says so. */
static void test_without_knowledge(void **state)
{
	struct knowledge *k = knowledge_new();
	struct explanation e = known_explain(k, log_text);

	assert_int_equal(e.count, 0);
	assert_int_equal(e.verdict.cause, CAUSE_UNKNOWN);
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_both_ways),
	    cmocka_unit_test(test_unreadable),
	    cmocka_unit_test(test_without_knowledge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
