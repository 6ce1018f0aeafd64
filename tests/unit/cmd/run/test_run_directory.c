#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/run/run_directory.h"
#include "cmd/supervise/supervisor_trace.h"

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

	/* an existing one stays */
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

/* A trace with a hole at its end, of a process that ended. */
static void put_trace(const char *name, off_t size, uint32_t end)
{
	struct trace_header h = {.major = TRACE_MAJOR,
	    .minor = TRACE_MINOR,
	    .pid = 1u << 30,
	    .file_bytes = 2 * TRACE_SLOT_BYTES,
	    .end_how = end};
	int fd = open(scratch(name), O_RDWR | O_CREAT, 0600);

	memcpy(h.magic, TRACE_MAGIC, sizeof(h.magic));
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &h, sizeof(h), 0), sizeof(h));
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
}

static off_t size_of(const char *name)
{
	struct stat st;

	return stat(scratch(name), &st) ? -1 : st.st_size;
}

/* Users' directories move with the rest, and are removed when empty; holes are cut off, except
 * in files that a process has open. */
static void users_and_holes(void **state)
{
	struct run_dir dir;
	struct err err;
	struct stat st;
	char inside[PATH_MAX];
	int fd;

	mkdir(scratch("u"), 0700);
	mkdir(scratch("u/uid.65534"), 0700);
	mkdir(scratch("u/uid.1"), 0700);
	mkdir(scratch("u/uid.x"), 0700);
	put_trace("u/5.0.whyoom", 1 << 30, TRACE_END_EXIT);
	put_trace("u/6.0.whyoom", 1 << 30, TRACE_END_NONE);
	put_trace("u/uid.65534/7.0.whyoom", 1 << 30, TRACE_END_EXIT);
	assert_int_equal(symlink("5.0.whyoom", scratch("u/8.0.whyoom")), 0);
	dir = (struct run_dir){.fd = open(scratch("u"), O_RDONLY | O_DIRECTORY)};
	fd = open(scratch("u/6.0.whyoom"), O_RDWR);
	run_dir_tidy(&dir);
	assert_int_equal(size_of("u/5.0.whyoom"), 2 * TRACE_SLOT_BYTES);
	assert_int_equal(size_of("u/6.0.whyoom"), 1 << 30); /* a process has it open */
	assert_int_equal(size_of("u/uid.65534/7.0.whyoom"), 2 * TRACE_SLOT_BYTES);
	assert_int_equal(stat(scratch("u/uid.1"), &st), -1);
	assert_int_equal(stat(scratch("u/uid.x"), &st), 0);
	close(fd);
	run_dir_tidy(&dir);
	assert_int_equal(size_of("u/6.0.whyoom"), 2 * TRACE_SLOT_BYTES);
	close(dir.fd);

	assert_int_equal(open_dir(scratch("u"), &dir, &err), 0);
	assert_int_equal(stat(scratch("u/uid.65534"), &st), -1);
	assert_true(*dir.killed);
	assert_true(snprintf(inside, sizeof(inside), "%s/uid.65534/7.0.whyoom", dir.killed) <
		    (int)sizeof(inside));
	assert_int_equal(stat(inside, &st), 0);
	run_dir_close(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(made_and_discarded),
	    scratch_test(refused),
	    scratch_test(others_may_write),
	    scratch_test(busy_and_put_away),
	    scratch_test(users_and_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
