#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/common/output.h"

static void a_new_file(void **state)
{
	struct str text = {0};
	struct err err = {""};
	struct stat st;

	str_puts(&text, "verdict\n");
	umask(027);
	assert_int_equal(output_write(&text, scratch("new"), &err), 0);
	assert_string_equal(scratch_read(scratch("new")), "verdict\n");
	assert_int_equal(stat(scratch("new"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640); /* as fopen() would have made it */
	umask(022);
	assert_int_equal(scratch_names(scratch("")), 1);

	/* Shorter and longer than before; empty. */
	str_clear(&text);
	str_puts(&text, "v");
	assert_int_equal(output_write(&text, scratch("new"), &err), 0);
	assert_string_equal(scratch_read(scratch("new")), "v");
	str_clear(&text);
	assert_int_equal(output_write(&text, scratch("new"), &err), 0);
	assert_string_equal(scratch_read(scratch("new")), "");
	str_free(&text);
	assert_int_equal(output_write(&text, scratch("none"), &err), 0);
	assert_string_equal(scratch_read(scratch("none")), "");
}

static void failures_leave_what_was(void **state)
{
	struct str text = {0};
	struct err err = {""};

	str_puts(&text, "new");
	assert_int_equal(output_write(&text, scratch("no/such/dir"), &err), -ENOENT);
	assert_non_null(strstr(err.text, "no/such/dir"));
	assert_int_equal(output_write(&text, scratch(""), &err), -EISDIR);
	str_free(&text);
}

static void memory_that_ran_out(void **state)
{
	struct str text = {0};
	struct err err = {""};

	str_puts(&text, "half of it");
	text.failed = true;
	scratch_file("kept", "old");
	assert_int_equal(output_write(&text, scratch("kept"), &err), -ENOMEM);
	assert_string_equal(scratch_read(scratch("kept")), "old");
	assert_int_equal(output_write(&text, NULL, &err), -ENOMEM);
	str_free(&text);
}

/* The disk takes 4 KiB and no more: no part of the output may appear. */
static void a_full_disk(void **state)
{
	int status;
	pid_t pid;

	scratch_file("kept", "old");
	pid = fork();
	if (!pid) {
		struct rlimit limit = {4096, 4096};
		struct str text = {0};
		struct err err = {""};

		for (int i = 0; i < 10000; i++)
			str_puts(&text, "a line of the report\n");
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &limit);
		_exit(output_write(&text, scratch("kept"), &err) == -EFBIG ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_string_equal(scratch_read(scratch("kept")), "old");
	assert_int_equal(scratch_names(scratch("")), 1);
}

/* A device or pipe is written to, not replaced. */
static void no_plain_file(void **state)
{
	struct str text = {0};
	struct err err = {""};
	struct stat st;
	char got[8] = "";
	int fd;

	str_puts(&text, "hello");
	assert_int_equal(output_write(&text, "/dev/null", &err), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_true(output_write(&text, "/dev/full", &err) < 0);
	assert_int_equal(mkfifo(scratch("pipe"), 0600), 0);
	fd = open(scratch("pipe"), O_RDWR | O_CLOEXEC);
	assert_int_equal(output_write(&text, scratch("pipe"), &err), 0);
	assert_int_equal(read(fd, got, sizeof(got)), 5);
	assert_string_equal(got, "hello");
	close(fd);
	str_free(&text);
}

static void standard_output(void **state)
{
	static const char *const names[] = {NULL, "-"};

	for (int i = 0; i < 2; i++) {
		struct str text = {0};
		struct err err = {""};
		int kept = dup(1), rc;

		str_add(&text, "a\0b", 3); /* all of it, not up to a NUL */
		fflush(stdout);
		assert_int_equal(
		    dup2(open(scratch("out"), O_CREAT | O_TRUNC | O_WRONLY, 0600), 1), 1);
		rc = output_write(&text, names[i], &err);
		fflush(stdout);
		dup2(kept, 1);
		close(kept);
		assert_int_equal(rc, 0);
		assert_memory_equal(scratch_read(scratch("out")), "a\0b", 4);
		str_free(&text);
	}
}

static const struct command command = {.name = "map", .result = FORMAT_OF_map, .details = ""};

static int take(int opt, const char *value, struct output *output)
{
	char *argv[] = {"map", "--option", NULL};

	optind = 2;
	optarg = (char *)value;
	return output_option(&command, opt, argv, output);
}

/* The formats come from the registry; the error for an unknown one lists all names. */
static void options(void **state)
{
	struct output output = OUTPUT_DEFAULT;
	int kept = dup(2);

	assert_ptr_equal(output.format, &format_text);
	assert_non_null(freopen(scratch("said"), "w", stderr));
	assert_int_equal(take(OUTPUT_FORMAT, "xml", &output), CMD_USAGE);
	assert_int_equal(take('?', NULL, &output), CMD_USAGE);
	fflush(stderr);
	dup2(kept, 2);
	close(kept);
	assert_non_null(
	    strstr(scratch_read(scratch("said")), "--format is text or json or html, not 'xml'"));
	assert_int_equal(take(OUTPUT_FORMAT, "json", &output), 0);
	assert_ptr_equal(output.format, &format_json);
	assert_int_equal(take('o', "file", &output), 0);
	assert_string_equal(output.path, "file");
	assert_false(output_style(&output).colour);
	assert_int_equal(take('v', NULL, &output), 0);
	assert_int_equal(take(OUTPUT_NATIVE, NULL, &output), 0);
	assert_true(output_style(&output).verbose && output_style(&output).native);
	/* No format writes a result that the command does not have. */
	assert_null(format_find(FORMAT_OF_NOTHING, "text"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(a_new_file),
	    scratch_test(failures_leave_what_was),
	    scratch_test(memory_that_ran_out),
	    scratch_test(a_full_disk),
	    scratch_test(no_plain_file),
	    scratch_test(standard_output),
	    scratch_test(options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
