#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/run_dir.h"
#include "cmd/run_trace.h"
#include "scratch.h"
#include "unit.h"

static int open_dir(const char *name, struct run_dir *dir, struct err *err)
{
	const struct run_dir_wish wish = {.path = name};

	return run_dir_open(&wish, dir, err);
}

static void made_and_discarded(void **state)
{
	struct run_dir dir;
	struct err err;
	struct stat st;

	assert_int_equal(open_dir(scratch("new"), &dir, &err), 0);
	assert_true(dir.made);
	assert_string_equal(dir.path, scratch("new"));
	assert_int_equal(stat(dir.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_string_equal(dir.killed, "");
	run_dir_discard(&dir);
	assert_int_equal(stat(scratch("new"), &st), -1);

	/* one that was there stays */
	mkdir(scratch("old"), 0700);
	assert_int_equal(open_dir(scratch("old"), &dir, &err), 0);
	assert_false(dir.made);
	run_dir_discard(&dir);
	assert_int_equal(stat(scratch("old"), &st), 0);
}

static void refused(void **state)
{
	struct run_dir dir;
	struct err err;

	scratch_file("file", "");
	assert_int_not_equal(open_dir(scratch("file"), &dir, &err), 0);
	assert_int_equal(symlink("old", scratch("link")), 0);
	assert_int_not_equal(open_dir(scratch("link"), &dir, &err), 0);
	assert_int_equal(open_dir(scratch("no/such"), &dir, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no/such"));
}

static void others_may_write(void **state)
{
	struct run_dir dir;
	struct err err;

	mkdir(scratch("open"), 0700);
	chmod(scratch("open"), 0777);
	assert_int_equal(open_dir(scratch("open"), &dir, &err), 0);
	assert_non_null(strstr(dir.note, "others"));
	run_dir_close(&dir);
}

static void busy_and_put_away(void **state)
{
	struct run_dir dir, again;
	struct run_trace *t;
	struct err err;
	struct stat st;
	int tell[2];
	pid_t pid;
	char c;

	assert_int_equal(open_dir(scratch("busy"), &dir, &err), 0);
	assert_int_equal(pipe(tell), 0);
	pid = fork();
	if (pid == 0) { /* a run that is killed */
		run_trace_new(dir.fd, &t, &err);
		_exit(write(tell[1], "", 1) != 1 || pause());
	}
	assert_int_equal(read(tell[0], &c, 1), 1);
	assert_int_equal(open_dir(scratch("busy"), &again, &err), -EBUSY);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	scratch_file("busy/other.txt", "stays");
	assert_int_equal(open_dir(scratch("busy"), &again, &err), 0);
	assert_true(*again.killed);
	assert_int_equal(faccessat(again.fd, RUN_TRACE_NAME, F_OK, 0), -1);
	assert_int_equal(faccessat(again.fd, "other.txt", F_OK, 0), 0);
	assert_int_equal(stat(again.killed, &st), 0);
	run_dir_close(&again);
	run_dir_close(&dir);
	/* and only once */
	assert_int_equal(open_dir(scratch("busy"), &again, &err), 0);
	assert_string_equal(again.killed, "");
	run_dir_close(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(made_and_discarded),
	    scratch_test(refused),
	    scratch_test(others_may_write),
	    scratch_test(busy_and_put_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
