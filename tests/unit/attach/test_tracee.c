/* A traced process gets every signal that is its own, stays stopped or goes on as it would, and
 * nothing of the tracing is left. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "attach/target.h"
#include "attach/tracee.h"

static volatile unsigned *counts; /* shared: signals taken, rounds made */

static void take(int signal)
{
	(void)signal;
	counts[0]++;
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (!pid) {
		signal(SIGUSR1, take);
		for (;;)
			counts[1]++;
	}
	while (!counts[1])
		usleep(1000);
	return pid;
}

static int setup(void **state)
{
	sigset_t child;

	(void)state;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return counts == MAP_FAILED;
}

static void finish(pid_t pid)
{
	struct target t;

	assert_int_equal(target_read(pid, &t, NULL), 0);
	assert_int_equal(t.tracer, 0);
	target_fini(&t);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	counts[0] = counts[1] = 0;
}

static void test_stop(void **state)
{
	pid_t pid = start();
	struct tracee t;
	unsigned before;

	(void)state;
	assert_int_equal(tracee_seize(pid, &t), 0);
	assert_int_equal(tracee_wait(&t, 20), -ETIMEDOUT);
	assert_int_equal(tracee_stop(&t, 5000), 0);
	assert_true(t.stopped && !t.signal && !t.trap && !t.job);
	before = counts[1];
	usleep(20000);
	assert_int_equal(counts[1], before);
	assert_int_equal(tracee_step(&t), 0);
	assert_true(t.trap && !t.signal);
	tracee_detach(&t);
	while (counts[1] < before + 1000)
		usleep(1000);
	finish(pid);
}

static void test_signals(void **state)
{
	pid_t pid = start();
	struct tracee t;

	(void)state;
	assert_int_equal(tracee_seize(pid, &t), 0);
	kill(pid, SIGUSR1);
	/* The signal comes first, and is delivered. */
	assert_int_equal(tracee_stop(&t, 5000), 0);
	tracee_detach(&t);
	while (counts[0] < 1)
		usleep(1000);
	assert_int_equal(tracee_seize(pid, &t), 0);
	kill(pid, SIGUSR1);
	assert_int_equal(tracee_wait(&t, 5000), 0);
	assert_int_equal(t.signal, SIGUSR1);
	tracee_detach(&t);
	while (counts[0] < 2)
		usleep(1000);
	finish(pid);
}

static void test_stopped_by_others(void **state)
{
	pid_t pid = start();
	struct tracee t;
	siginfo_t info;

	(void)state;
	assert_int_equal(tracee_seize(pid, &t), 0);
	kill(pid, SIGSTOP);
	assert_int_equal(tracee_wait(&t, 5000), 0);
	assert_int_equal(t.signal, SIGSTOP);
	assert_int_equal(tracee_continue(&t), 0); /* it waits for the end */
	assert_int_equal(tracee_wait(&t, 20), -ETIMEDOUT);
	tracee_detach(&t);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
	kill(pid, SIGCONT);
	finish(pid);
}

static void test_ended(void **state)
{
	pid_t pid = start();
	struct tracee t;

	(void)state;
	assert_int_equal(tracee_seize(pid, &t), 0);
	kill(pid, SIGKILL);
	assert_int_equal(tracee_wait(&t, 5000), -ESRCH);
	assert_int_equal(tracee_seize(pid, &t), -ESRCH);
	counts[0] = counts[1] = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_stop),
	    cmocka_unit_test(test_signals),
	    cmocka_unit_test(test_stopped_by_others),
	    cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
