/* The processes of a run, as /proc tells them. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "../scratch.h"
#include "cmd/supervise/process_family.h"

static unsigned left;

static void leave(struct run_member *member)
{
	left++;
	member->look = NULL;
}

static bool has(const struct run_family *f, pid_t pid)
{
	for (size_t i = 0; i < f->members.count; i++)
		if (f->members.items[i].pid == pid)
			return true;
	return false;
}

/* It exits soon, whatever happens to the test. */
static void __attribute__((noreturn)) stay(void)
{
	alarm(60);
	_exit(pause());
}

/* A grandchild whose parent has exited. */
static pid_t make_orphan(void)
{
	pid_t kid, orphan = 0;
	int relay[2];

	if (pipe(relay))
		_exit(1);
	kid = fork();
	if (kid == 0) {
		orphan = fork();
		if (orphan == 0)
			stay();
		_exit(write(relay[1], &orphan, sizeof(orphan)) < 0);
	}
	if (read(relay[0], &orphan, sizeof(orphan)) < 0)
		_exit(1);
	waitpid(kid, NULL, 0);
	return orphan;
}

/* A child that starts another process at each byte, and writes its pid: 'o' an orphan, else a
 * child of its own. */
static pid_t start(int *ask, int *told)
{
	int in[2], out[2];
	pid_t pid;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (pid == 0) {
		char c;

		close(in[1]);
		while (read(in[0], &c, 1) == 1) {
			pid_t made = c == 'o' ? make_orphan() : fork();

			if (made == 0)
				stay();
			if (write(out[1], &made, sizeof(made)) < 0)
				break;
		}
		_exit(0);
	}
	close(in[0]);
	close(out[1]);
	*ask = in[1];
	*told = out[0];
	return pid;
}

static pid_t another(int ask, int told, char how)
{
	pid_t pid;

	assert_int_equal(write(ask, &how, 1), 1);
	assert_int_equal(read(told, &pid, sizeof(pid)), sizeof(pid));
	return pid;
}

static void comes_and_goes(void **state)
{
	pid_t target, first, orphan, ours = fork();
	struct run_family f;
	int ask, told, dir;
	char name[64];

	if (ours == 0)
		stay();
	target = start(&ask, &told);
	mkdir(scratch("t"), 0700);
	dir = open(scratch("t"), O_RDONLY | O_DIRECTORY);
	left = 0;
	run_family_init(&f, target, dir, leave);
	assert_int_equal(f.members.count, 1);
	assert_true(run_family_news(&f)); /* not sampled yet */
	first = another(ask, told, 'k');
	run_family_find(&f, false);
	assert_true(has(&f, target) && has(&f, first));
	assert_false(has(&f, getpid()) || has(&f, ours));
	/* Later processes are new; a pid that is not in the run is not checked again. */
	orphan = another(ask, told, 'o');
	assert_true(run_family_news(&f));
	run_family_find(&f, false);
	assert_false(has(&f, orphan)); /* its parent was never seen */
	assert_int_equal(f.members.count, 2);
	/* Until a trace of it appears. */
	snprintf(name, sizeof(name), "t/%d.0.whyoom", (int)orphan);
	scratch_file(name, "");
	assert_true(run_family_news(&f));
	run_family_find(&f, false);
	assert_true(has(&f, orphan));
	kill(first, SIGKILL);
	kill(orphan, SIGKILL);
	close(ask); /* the target ends, and its children are reaped */
	waitpid(target, NULL, 0);
	assert_int_equal(left, 0);
	run_family_find(&f, true);
	assert_false(has(&f, target));
	assert_true(left >= 1);
	run_family_fini(&f);
	kill(ours, SIGKILL);
	waitpid(ours, NULL, 0);
	close(told);
	close(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {scratch_test(comes_and_goes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
