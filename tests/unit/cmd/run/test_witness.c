#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../util/unit.h"
#include "cmd/run/witness.h"
#include "cmd/supervise/proc.h"

static void tells_the_group_from_one(void **state)
{
	char word[] = "run";
	char *argv[] = {word, NULL};
	struct run_witness w;
	sigset_t all, before;
	siginfo_t si;

	if (getpgrp() != getpid()) /* the runner may have done so */
		assert_int_equal(setpgid(0, 0), 0);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	run_witness_start(&w, argv);
	assert_true(w.pid > 0);
	assert_string_equal(word, "run"); /* the supervisor's own is left alone */
	for (int i = 0; i < 5; i++) {
		kill(getpid(), SIGTERM);
		sigwaitinfo(&all, &si);
		assert_false(run_witness_saw(&w, SIGTERM));
		kill(0, SIGTERM);
		sigwaitinfo(&all, &si);
		assert_true(run_witness_saw(&w, SIGTERM));
	}
	assert_false(run_witness_saw(&w, 0));
	assert_false(run_witness_saw(&w, 65));
	run_witness_stop(&w);
	assert_false(run_witness_saw(&w, SIGTERM)); /* none: every signal is the supervisor's */
	run_witness_stop(&w);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* A witness without CPU time is asked again when it has some. */
static void a_busy_machine(void **state)
{
	char *argv[] = {NULL};
	struct run_witness w;
	sigset_t all, before;
	struct run_proc_stat stat;
	siginfo_t si;
	pid_t waker;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	run_witness_start(&w, argv);
	assert_true(w.pid > 0);
	assert_int_equal(kill(w.pid, SIGSTOP), 0);
	while (run_proc_stat(w.pid, &stat) && stat.state != 'T')
		usleep(1000);
	waker = fork();
	if (waker == 0) {
		usleep(300000);
		_exit(kill(w.pid, SIGCONT));
	}
	kill(getpid(), SIGTERM);
	kill(w.pid, SIGTERM);
	do
		sigwaitinfo(&all, &si);
	while (si.si_signo != SIGTERM);
	assert_true(run_witness_saw(&w, SIGTERM));
	waitpid(waker, NULL, 0);
	run_witness_stop(&w);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Two signals reach the supervisor as one: the witness's second does not answer a third. */
static void left_over_counts_are_no_answer(void **state)
{
	char *argv[] = {NULL};
	struct run_witness w;
	sigset_t all, before;
	siginfo_t si;
	int right = 0;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	run_witness_start(&w, argv);
	assert_true(w.pid > 0);
	/* On a busy machine the witness may be late once. */
	for (int i = 0; i < 5 && !right; i++) {
		kill(getpid(), SIGTERM);
		kill(w.pid, SIGTERM);
		sigwaitinfo(&all, &si);
		run_witness_saw(&w, SIGTERM);
		kill(w.pid, SIGTERM);
		usleep(600000);
		kill(getpid(), SIGTERM);
		sigwaitinfo(&all, &si);
		right += !run_witness_saw(&w, SIGTERM);
	}
	assert_int_equal(right, 1);
	run_witness_stop(&w);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tells_the_group_from_one),
	    cmocka_unit_test(a_busy_machine),
	    cmocka_unit_test(left_over_counts_are_no_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
