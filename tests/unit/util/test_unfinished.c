/* Unfinished files are removed when a signal ends a process, and that signal is its end;
 * finished ones stay. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "util/unfinished.h"

static char folder[] = "/tmp/whyoom-unfinished-XXXXXX";

static const char *in_folder(const char *name)
{
	static char paths[8][128];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void make(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		abort();
	close(fd);
}

/* In a process of its own: returns how it ended. */
static int end_of(void (*work)(int fd, int what), int what, int *word)
{
	int pipes[2], status = 0;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		work(pipes[1], what);
		_exit(99);
	}
	close(pipes[1]);
	*word = 0;
	assert_int_equal(read(pipes[0], word, sizeof(*word)), sizeof(*word));
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void begin_all(int fd)
{
	pid_t child;

	unfinished_watch();
	if (unfinished_file(in_folder("file")) || unfinished_directory(in_folder("directory")) ||
	    unfinished_file(in_folder("whole")) || unfinished_file(in_folder("never made")))
		abort();
	make(in_folder("file"));
	make(in_folder("whole"));
	unfinished_done(in_folder("whole"));
	if (mkdir(in_folder("directory"), 0700))
		abort();
	for (int i = 0; i < 200; i++) {
		char name[64];

		snprintf(name, sizeof(name), "directory/%d with a name of some length", i);
		make(in_folder(name));
	}
	child = fork();
	if (child == 0)
		for (;;)
			pause();
	if (unfinished_child(child) || write(fd, &child, sizeof(child)) < 0)
		abort();
}

static void is_interrupted(int fd, int signal_number)
{
	begin_all(fd);
	raise(signal_number);
}

static void exits(int fd, int status)
{
	begin_all(fd);
	exit(status);
}

static void nothing_is_left(int child)
{
	assert_int_equal(kill(child, 0), -1);
	assert_int_not_equal(access(in_folder("file"), F_OK), 0);
	assert_int_not_equal(access(in_folder("directory"), F_OK), 0);
	assert_int_equal(access(in_folder("whole"), F_OK), 0);
	unlink(in_folder("whole"));
}

static void ends_by_the_signal(void **state)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

	(void)state;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		int child, status = end_of(is_interrupted, signals[i], &child);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i]);
		nothing_is_left(child);
	}
}

static void exit_halfway(void **state)
{
	int child, status = end_of(exits, 1, &child);

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	nothing_is_left(child);
}

/* As under nohup. */
static void ignores(int fd, int what)
{
	(void)what;
	signal(SIGHUP, SIG_IGN);
	unfinished_watch();
	raise(SIGHUP);
	if (write(fd, &fd, sizeof(fd)) < 0)
		abort();
	_exit(7);
}

static void ignored_signals_stay_so(void **state)
{
	int word, status = end_of(ignores, 0, &word);

	(void)state;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void too_many(void **state)
{
	char name[32];
	int n = 0, rc = 0;

	(void)state;
	for (; !rc && n < 1000; n++) {
		snprintf(name, sizeof(name), "/nowhere/%d", n);
		rc = unfinished_file(name);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_true(n > 16);
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "/nowhere/%d", i);
		unfinished_done(name);
	}
	assert_int_equal(unfinished_file(in_folder("removed")), 0);
	make(in_folder("removed"));
	unfinished_remove(in_folder("removed"));
	assert_int_not_equal(access(in_folder("removed"), F_OK), 0);
	make(in_folder("removed"));
	unfinished_remove(in_folder("removed")); /* it is not registered any more */
	assert_int_equal(unlink(in_folder("removed")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ends_by_the_signal),
	    cmocka_unit_test(exit_halfway),
	    cmocka_unit_test(ignored_signals_stay_so),
	    cmocka_unit_test(too_many),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
