/* Tuned numbers in a build with -Dtuned=true: each case runs this program again with the
 * environment set, since the numbers are set before main(). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#include "util/tuned.h"

struct factor {
	struct tuned_number number;
	int other;
};

TUNED(unsigned, CALLS_MIN, 4u, "so that \"halved\" is two");
TUNED(uint64_t, BYTES_LEAST, 8ull << 20, "large");
TUNED(int, OFFSET, -3, "below 0");
TUNED(double, SHARE, 0.75, "a part");
TUNED(double, NEVER_READ, 1.5, "so that it is listed as not read");
TUNED_TABLE(struct factor, FACTORS, {{"steady", 0.5, "half"}, 1}, {{"served", 0.25, "less"}, 2});

static const char *self;

/* The program's output with that in WHYOOM_TUNED; returns its exit status. */
static int run(const char *tuned, const char *list, char *out, size_t size)
{
	char command[600];
	FILE *pipe;

	snprintf(command, sizeof(command), "WHYOOM_TUNED='%s' %s%s %s numbers 2>&1", tuned,
	    list ? "WHYOOM_TUNED_LIST=" : "", list ? list : "", self);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	out[fread(out, 1, size - 1, pipe)] = '\0';
	return pclose(pipe);
}

static void test_default(void **state)
{
	char out[400];

	assert_int_equal(run("", NULL, out, sizeof(out)), 0);
	assert_string_equal(out, "4 8388608 -3 0.75 0.5 0.25\n");
	(void)state;
}

static void test_set(void **state)
{
	char out[400];

	assert_int_equal(
	    run("CALLS_MIN=2,OFFSET=-9,SHARE=0.1,BYTES_LEAST=1", NULL, out, sizeof(out)), 0);
	assert_string_equal(out, "2 1 -9 0.1 0.5 0.25\n");
	assert_int_equal(run("FACTORS.served=3", NULL, out, sizeof(out)), 0);
	assert_string_equal(out, "4 8388608 -3 0.75 0.5 3\n");
	assert_int_not_equal(run("CALLS_MIN", NULL, out, sizeof(out)), 0);
	assert_int_not_equal(run("CALLS_MIN=two", NULL, out, sizeof(out)), 0);
	assert_int_not_equal(run("CALLS_LEAST=2", NULL, out, sizeof(out)), 0);
	assert_non_null(strstr(out, "no such number: CALLS_LEAST"));
	(void)state;
}

static void test_list(void **state)
{
	char out[400], text[4000], path[] = "/tmp/tuned-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "r");

	assert_int_equal(run("SHARE=0.5", path, out, sizeof(out)), 0);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	remove(path);
	assert_non_null(
	    strstr(text, "\"name\":\"CALLS_MIN\",\"value\":4,\"whole\":true,\"read\":true,"
			 "\"why\":\"so that \\\"halved\\\" is two\"}\n"));
	assert_non_null(
	    strstr(text, "\"name\":\"SHARE\",\"value\":0.5,\"whole\":false,\"read\":true"));
	assert_non_null(strstr(text, "\"name\":\"OFFSET\",\"value\":-3,"));
	assert_non_null(
	    strstr(text, "\"name\":\"NEVER_READ\",\"value\":1.5,\"whole\":false,\"read\":false"));
	assert_non_null(strstr(text, "\"name\":\"FACTORS.served\",\"value\":0.25,"));
	(void)state;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_default),
	    cmocka_unit_test(test_set),
	    cmocka_unit_test(test_list),
	};

	if (argc > 1) {
		printf("%u %llu %d %g %g %g\n", CALLS_MIN, (unsigned long long)BYTES_LEAST, OFFSET,
		    SHARE, FACTORS[0].number.value, FACTORS[1].number.value);
		return 0;
	}
	self = argv[0];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
