/* The order of a story: by time if all lines share a clock, else as in the log; and its events. */
#include "../util/unit.h"

#include "known.h"
#include "util/text/str.h"

static const char text_of[] =
    "framework = t\n"
    "[message fail]\nkind = failure\nneedle = FAIL\npattern = FAIL \\d+\nmeaning = it\n"
    "group = g\n"
    "[message again]\nkind = retry\nneedle = AGAIN\npattern = AGAIN\nmeaning = it\ngroup = g\n"
    "[message warn]\nkind = warning\nneedle = WARN\npattern = WARN \\d+\nmeaning = it\n";

static void order(const char *log, bool by_time, const char *expected)
{
	struct knowledge *k = known_text(text_of);
	struct explanation e = known_explain(k, log);
	struct str got = {0};

	for (size_t i = 0; i < e.count; i++)
		str_printf(&got, "%s(%u) ", e.messages[i].text, e.messages[i].event);
	assert_int_equal(e.by_time, by_time);
	assert_string_equal(str_text(&got), expected);
	str_free(&got);
	explain_fini(&e);
	knowledge_free(k);
}

static void test_order(void **state)
{
	/* Two files one after the other. */
	order("2026-05-01 10:00:00 WARN 1\n2026-05-01 10:00:05 FAIL 2\n"
	      "2026-05-01 10:00:01 WARN 3\n2026-05-01 10:00:04 FAIL 4\n",
	    true, "WARN 1(0) WARN 3(0) FAIL 4(1) FAIL 2(1) ");
	/* Uptime and wall clock cannot be compared. */
	order("2026-05-01 10:00:00 FAIL 1\n[   12.000001] FAIL 2\n", false, "FAIL 1(1) FAIL 2(1) ");
	order("FAIL 1\nFAIL 2\n", false, "FAIL 1(1) FAIL 2(1) ");
	order("[   12.000001] FAIL 1\n[   11.000001] FAIL 2\n", true, "FAIL 2(1) FAIL 1(1) ");
	(void)state;
}

/* A time without a year is of the year that others name. */
static void test_years(void **state)
{
	order("2026-05-01T10:00:05Z FAIL 1\nINFO 05-01 10:00:01 FAIL 2\n", true,
	    "FAIL 2(1) FAIL 1(1) ");
	order("2026-01-01T00:00:05Z FAIL 1\nDec 31 23:59:59 h FAIL 2\n", true,
	    "FAIL 2(1) FAIL 1(1) ");
	(void)state;
}

static void test_events(void **state)
{
	order(
	    "2026-05-01 10:00:00 FAIL 1\n2026-05-01 10:00:20 FAIL 2\n2026-05-01 11:00:00 FAIL 3\n",
	    true, "FAIL 1(1) FAIL 2(1) FAIL 3(2) ");
	(void)state;
}

/* A failure that the program survives at once is none. */
static void test_retried(void **state)
{
	struct knowledge *k = known_text(text_of);
	struct explanation e = known_explain(k, "FAIL 1\nx\nAGAIN\nFAIL 2\n");

	assert_int_equal(e.messages[0].kind, MESSAGE_RETRY);
	assert_int_equal(e.messages[2].kind, MESSAGE_FAILURE);
	explain_fini(&e);
	knowledge_free(k);
	(void)state;
}

/* A line that names no memory yields to one beside it that names a device. */
static void test_unnamed(void **state)
{
	struct knowledge *k = known_text(
	    "framework = t\n"
	    "[message h]\nkind = failure\nfallback = yes\nclaim = host\nmeaning = it\n"
	    "[message d]\nkind = failure\nfallback = yes\nclaim = device\nmeaning = it\n");
	struct explanation near =
	    known_explain(k, "failed to allocate memory\nx\ny\nz\nGPU out of memory\n");
	struct explanation sized =
	    known_explain(k, "failed to allocate 512 MiB of memory\nGPU out of memory\n");
	struct explanation far =
	    known_explain(k, "failed to allocate memory\n\n\n\n\n\n\n\n\nGPU out of memory\n");

	assert_int_equal(near.count, 1);
	assert_string_equal(near.messages[0].known->claim, "device");
	assert_int_equal(sized.count, 2);
	assert_int_equal(far.count, 2);
	explain_fini(&near);
	explain_fini(&sized);
	explain_fini(&far);
	knowledge_free(k);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_years),
	    cmocka_unit_test(test_events),
	    cmocka_unit_test(test_retried),
	    cmocka_unit_test(test_unnamed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
