/* test_options.c - the WHYOOM_* variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"

static int complaints;
static char last[300];

static void complain(const char *line)
{
	complaints++;
	snprintf(last, sizeof(last), "%s", line);
}

static void read_options(char *const *environment)
{
	complaints = 0;
	options_read(environment, complain);
}

static void test_defaults(void **state)
{
	char *none[] = {"PATH=/bin", NULL};

	read_options(none);
	assert_int_equal(complaints, 0);
	assert_false(options.off);
	assert_true(options.cmdline);
	assert_true(options.stacks);
	assert_int_equal(options.max_trace, 2ull << 30);
	assert_string_equal(options.dir, "");
	assert_string_equal(options.python, "auto");
}

static void test_values(void **state)
{
	char *some[] = {"WHYOOM_OFF=1", "WHYOOM_MAX_TRACE=64MiB", "WHYOOM_DIR=/x y",
	    "WHYOOM_PYTHON=off", "WHYOOM_CMDLINE=0", "WHYOOM_STACKS=", NULL};
	char text[100];

	read_options(some);
	assert_int_equal(complaints, 0);
	assert_true(options.off);
	assert_false(options.cmdline);
	assert_true(options.stacks); /* empty means not set */
	assert_int_equal(options.max_trace, 64 << 20);
	assert_string_equal(options.dir, "/x y");
	assert_string_equal(options.python, "off");
	options_text(some, text, 40);
	assert_int_equal(strlen(text), 39); /* cut, not overrun */
}

static void test_wrong(void **state)
{
	char *wrong[] = {"WHYOOM_OFF=yes", "WHYOOM_MAX_TRACE=1.5GiB", "WHYOOM_PYTHON=aut", NULL};

	read_options(wrong);
	assert_int_equal(complaints, 3);
	assert_false(options.off);
	assert_int_equal(options.max_trace, 2ull << 30);
	assert_string_equal(options.python, "auto");
	assert_non_null(strstr(last, "WHYOOM_PYTHON=aut is not auto|off|force; using auto"));
}

/* A bound for a trace that could hold nothing, or that no disk has, is replaced by the default, and
 * a line tells the limits. */
static void test_bounds(void **state)
{
	static const struct {
		char *set;
		bool taken;
	} cases[] = {{"WHYOOM_MAX_TRACE=5", false}, {"WHYOOM_MAX_TRACE=1048575", false},
	    {"WHYOOM_MAX_TRACE=1MiB", true}, {"WHYOOM_MAX_TRACE=16TiB", true},
	    {"WHYOOM_MAX_TRACE=999999TiB", false}, {"WHYOOM_SAMPLE_EVERY=2TiB", false},
	    {"WHYOOM_EXACT_FROM=1", true}, {"WHYOOM_MAX_RATE=0", true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *one[] = {cases[i].set, NULL};

		read_options(one);
		assert_int_equal(complaints, !cases[i].taken);
		if (!cases[i].taken)
			assert_int_equal(options.max_trace, 2ull << 30);
	}
	read_options((char *[]){"WHYOOM_MAX_TRACE=5", NULL});
	assert_string_equal(
	    last, "WHYOOM_MAX_TRACE=5 is not a size from 1MiB to 16TiB; using 2GiB");
}

static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {{"0", 0}, {"512", 512}, {"1K", 1024}, {"64KiB", 65536}, {"3mib", 3 << 20},
	    {"2GiB", 2ll << 30}, {"1T", 1ll << 40}, {"7B", 7}, {"", -1}, {"GiB", -1}, {"1X", -1},
	    {"-1", -1}, {"1KiBs", -1}, {"99999999999999999999", -1}, {"99999999999G", -1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t v = 0;

		assert_int_equal(options_parse_size(cases[i].text, &v), cases[i].value >= 0);
		if (cases[i].value >= 0)
			assert_int_equal(v, cases[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_wrong),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
