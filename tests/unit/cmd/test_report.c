/* `whyoom report`, and the report at the end of `whyoom run`. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/report.h"
#include "recorded.h"

#define REPORT(...)                                                                                \
	({                                                                                         \
		char *argv_[] = {"report", __VA_ARGS__, NULL};                                     \
		cmd_report.main((int)(sizeof(argv_) / sizeof(*argv_)) - 1, argv_);                 \
	})
#define PATH(name) ((char *)scratch(name))

static const char *after_run(const char *dir, bool always, int expect)
{
	FILE *out = fopen(scratch("after"), "w");
	struct report_end end = {.out = out, .always = always};
	struct err err = {""};

	assert_int_equal(report_after_run(dir, &end, &err), expect);
	fclose(out);
	if (expect)
		assert_true(*err.text);
	return scratch_read(scratch("after"));
}

static unsigned lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void after_a_run(void **state)
{
	const char *text;

	recorded_process("bad/1.0.whyoom", 1, 2000, true);
	recorded_process("good/1.0.whyoom", 1, 2000, false);
	text = after_run(scratch("bad"), false, 0);
	assert_in_range(lines(text), 3, 10);
	assert_non_null(strstr(text, "leak"));
	assert_non_null(strstr(text, "whyoom report"));
	assert_non_null(strstr(text, scratch("bad")));
	assert_string_equal(after_run(scratch("good"), false, 0), "");
	assert_in_range(lines(after_run(scratch("good"), true, 0)), 1, 10);
	assert_string_equal(after_run(scratch("none"), true, -ENOENT), "");
	/* Control characters of a directory's name do not reach the terminal. */
	recorded_process("e\033[31mvil\n/1.0.whyoom", 1, 2000, true);
	text = after_run(scratch("e\033[31mvil\n"), false, 0);
	assert_in_range(lines(text), 3, 10);
	assert_null(strchr(text, '\033'));
}

static void to_a_file(void **state)
{
	const char *text;

	recorded_process("bad/1.0.whyoom", 4242, 2000, true);
	assert_int_equal(REPORT("-o", PATH("out"), PATH("bad")), CMD_DONE);
	text = scratch_read(scratch("out"));
	assert_non_null(strstr(text, "leak"));
	assert_null(strchr(text, '\033')); /* no colour in a file */
	assert_int_equal(
	    REPORT("--format", "json", "--output", PATH("out"), PATH("bad")), CMD_DONE);
	text = scratch_read(scratch("out"));
	assert_int_equal(text[0], '{');
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_non_null(strstr(text, "\"cause\": \"leak\""));
	assert_non_null(strstr(text, "\"pid\": 4242"));
	/* One of its files serves as well, and options may follow it. */
	assert_int_equal(
	    REPORT(PATH("bad/1.0.whyoom"), "--format=json", "-o", PATH("two")), CMD_DONE);
	assert_non_null(strstr(scratch_read(scratch("two")), "\"cause\": \"leak\""));
}

/* Among many processes the report is about the failed one. */
static void many_processes(void **state)
{
	const char *text;

	recorded_process("d/1.0.whyoom", 1, 1500, false);
	recorded_process("d/2.0.whyoom", 2, 2000, true);
	recorded_process("d/3.0.whyoom", 3, 2500, false);
	assert_int_equal(REPORT("--format=json", "-o", PATH("out"), PATH("d")), CMD_DONE);
	text = scratch_read(scratch("out"));
	assert_non_null(strstr(text, "\"cause\": \"leak\""));
	assert_non_null(strstr(text, "\"pid\": 3")); /* the others are listed */
	text = strstr(text, "\"failure\": {");
	assert_non_null(text);
	text = strstr(text, "\"pid\": ");
	assert_memory_equal(text, "\"pid\": 2,", 9);
	assert_non_null(strstr(text, "\"requested_bytes\": 20971520"));
}

static void errors(void **state)
{
	int kept = dup(2);

	/* A missing knowledge file would be reported: a test has none beside it. */
	setenv("WHYOOM_KNOWLEDGE", scratch("."), 1);
	recorded_process("bad/1.0.whyoom", 1, 20, true);
	assert_non_null(freopen(scratch("said"), "w", stderr));
	assert_int_equal(cmd_report.main(1, (char *[]){"report", NULL}), CMD_USAGE);
	assert_int_equal(REPORT("--format", "xml", PATH("bad")), CMD_USAGE);
	assert_int_equal(REPORT("--format"), CMD_USAGE);
	assert_int_equal(REPORT("--nosuch", PATH("bad")), CMD_USAGE);
	assert_int_equal(REPORT("-x", PATH("bad")), CMD_USAGE);
	assert_int_equal(REPORT("-o"), CMD_USAGE);
	assert_int_equal(REPORT(PATH("none")), CMD_ERROR);
	assert_int_equal(REPORT(PATH("bad"), PATH("none")), CMD_ERROR);
	assert_int_equal(REPORT("-o", PATH("no/dir"), PATH("bad")), CMD_ERROR);
	fflush(stderr);
	dup2(kept, 2);
	close(kept);
	/* One line for each, and a pointer to help for wrong usage. */
	assert_int_equal(lines(scratch_read(scratch("said"))), 6 * 2 + 3);
	assert_non_null(strstr(scratch_read(scratch("said")), "'xml'"));
	assert_non_null(strstr(scratch_read(scratch("said")), "'--nosuch'"));
	assert_false(scratch_has("no"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(after_a_run),
	    scratch_test(to_a_file),
	    scratch_test(many_processes),
	    scratch_test(errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
