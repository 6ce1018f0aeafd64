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
#include "cmd/run/child.h"

/* The supervisor just before and just after the target's fork. */
static void (*before_fork)(void), (*after_fork)(pid_t child);
static bool witness_is_made;
static const siginfo_t *taken; /* taken before the start */

/* In place of libc's, for the code under test. */
pid_t fork(void)
{
	bool now = witness_is_made;
	pid_t pid;

	witness_is_made = true;
	if (now && before_fork)
		before_fork();
	pid = _Fork();
	if (pid > 0 && now && after_fork)
		after_fork(pid);
	return pid;
}

static int run(char **argv, struct run_child *child)
{
	struct run_program program;
	struct run_trace *t;
	struct err err;
	int dir, status;

	mkdir(scratch("run"), 0700);
	dir = open(scratch("run"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unlinkat(dir, RUN_TRACE_NAME, 0);
	run_program_look(argv[0], &program);
	witness_is_made = false;
	run_child_prepare(child, argv);
	assert_int_equal(run_trace_new(dir, &t, &err), 0);
	if (taken)
		run_child_keep(child, taken);
	status = run_child_start(child, &program, argv, &err);
	if (!status)
		status = run_child_wait(child, t, dir, false);
	run_child_restore(child);
	run_trace_close(t, status);
	close(dir);
	return status;
}

static int run_shell(const char *script, struct run_child *child)
{
	char text[256], *argv[] = {(char[]){"sh"}, (char[]){"-c"}, text, NULL};

	snprintf(text, sizeof(text), "%s", script);
	return run(argv, child);
}

static void exit_codes(void **state)
{
	struct run_child child;

	assert_int_equal(run_shell("exit 0", &child), 0);
	assert_int_equal(run_shell("exit 200", &child), 200);
	assert_int_equal(child.code, CLD_EXITED);
	assert_int_equal(run_shell("kill -9 $$", &child), 137);
	assert_int_equal(child.code, CLD_KILLED);
	assert_int_equal(child.status, SIGKILL);
}

static void errors_of_exec(void **state)
{
	char *argv[] = {(char[]){"/no/such/program"}, NULL};
	struct run_child child;

	assert_int_equal(run(argv, &child), -ENOENT);
	scratch_file("plain", "text");
	argv[0] = (char *)scratch("plain");
	assert_int_equal(run(argv, &child), -EACCES);
}

static void mask_is_given_back(void **state)
{
	char *argv[] = {(char[]){"grep"}, (char[]){"-q"}, (char[]){"^SigBlk:.*00800$"},
	    (char[]){"/proc/self/status"}, NULL};
	sigset_t odd, after;
	struct run_child child;

	sigemptyset(&odd);
	sigaddset(&odd, SIGUSR2);
	sigprocmask(SIG_SETMASK, &odd, NULL);
	signal(SIGCHLD, SIG_IGN); /* or its end could not be seen */
	assert_int_equal(run(argv, &child), 0); /* 1: the mask was another one */
	sigprocmask(SIG_SETMASK, NULL, &after);
	assert_true(sigismember(&after, SIGUSR2));
	assert_false(sigismember(&after, SIGTERM));
	assert_ptr_equal(signal(SIGCHLD, SIG_DFL), SIG_IGN);
}

static void lets_go_of_descriptors(void **state)
{
	int p[2], keep, status;
	pid_t pid;
	char c;

	assert_int_equal(pipe(p), 0);
	keep = dup(STDERR_FILENO);
	pid = fork();
	if (pid == 0) {
		close(p[0]);
		run_child_let_go((const int[]){keep, -1});
		_exit(fcntl(p[1], F_GETFD) >= 0 || fcntl(keep, F_GETFD) < 0 ||
		      fcntl(STDERR_FILENO, F_GETFD) < 0 || read(STDIN_FILENO, &c, 1) != 0);
	}
	close(p[1]);
	assert_int_equal(read(p[0], &c, 1), 0); /* no process has it any more */
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	close(p[0]);
	close(keep);
}

/* The supervisor does not pass on its own signals: this one comes from another process. */
static void sent(pid_t to, int sig)
{
	pid_t pid = _Fork();

	if (pid == 0)
		_exit(kill(to, sig) != 0);
	waitpid(pid, NULL, 0);
}

static pid_t supervisor;

static void to_it(void)
{
	sent(supervisor, SIGRTMIN);
}

static void to_all(void)
{
	sent(0, SIGRTMIN);
}

static void to_it_late(pid_t child)
{
	sent(supervisor, SIGRTMIN);
}

static void to_all_late(pid_t child)
{
	sent(0, SIGRTMIN);
}

/* Of a kind that is queued: the target exits with the number it got. */
static int arrived(void (*before)(void), void (*after)(pid_t))
{
	char *argv[] = {(char[]){"python3"}, (char[]){"-c"},
	    (char[]){"import signal\n"
		     "n = 0\n"
		     "while signal.sigtimedwait([signal.SIGRTMIN], 0.5):\n"
		     "    n += 1\n"
		     "raise SystemExit(n)\n"},
	    NULL};
	struct run_child child;
	sigset_t mask, kept;
	int status;

	sigemptyset(&mask);
	sigaddset(&mask, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &mask, &kept);
	before_fork = before;
	after_fork = after;
	status = run(argv, &child);
	before_fork = NULL;
	after_fork = NULL;
	sigprocmask(SIG_SETMASK, &kept, NULL);
	return status;
}

/* The target gets a signal that came before it exists, and gets no signal twice. */
static void first_moments(void **state)
{
	supervisor = getpid();
	if (getpgrp() != getpid())
		assert_int_equal(setpgid(0, 0), 0);
	assert_int_equal(arrived(NULL, NULL), 0);
	assert_int_equal(arrived(to_it, NULL), 1);
	assert_int_equal(arrived(to_all, NULL), 1);
	assert_int_equal(arrived(NULL, to_it_late), 1);
	assert_int_equal(arrived(NULL, to_all_late), 1);
}

static void fatal_to_it(void)
{
	sent(supervisor, SIGTERM);
}

static void fatal_in_the_first_moments(void **state)
{
	struct run_child child;

	supervisor = getpid();
	before_fork = fatal_to_it;
	assert_int_equal(run_shell("exec sleep 30", &child), 128 + SIGTERM);
	assert_true(child.relayed_kill);
	before_fork = NULL;
}

static void taken_before_the_start(void **state)
{
	siginfo_t si = {.si_signo = SIGTERM};
	struct run_child child;

	si.si_pid = getppid();
	taken = &si;
	assert_int_equal(run_shell("exec sleep 30", &child), 128 + SIGTERM);
	taken = NULL;
}

static void stop_it(pid_t child)
{
	sent(child, SIGTSTP);
}

/* Ctrl-Z before the target has executed: it stops, the supervisor too, and both go on. */
static void stopped_in_the_first_moments(void **state)
{
	struct run_child child;
	int status;
	pid_t pid = _Fork();

	if (pid == 0) {
		setpgid(0, 0);
		after_fork = stop_it;
		_exit(run_shell("exit 7", &child));
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(WSTOPSIG(status), SIGTSTP);
	kill(-pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    scratch_test(exit_codes),
	    scratch_test(errors_of_exec),
	    scratch_test(mask_is_given_back),
	    scratch_test(lets_go_of_descriptors),
	    scratch_test(first_moments),
	    scratch_test(fatal_in_the_first_moments),
	    scratch_test(taken_before_the_start),
	    scratch_test(stopped_in_the_first_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
