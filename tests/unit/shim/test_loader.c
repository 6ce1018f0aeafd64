/*
 * test_loader.c - nobody is at the loader's list while a thread forks; in a child nobody goes there
 * unasked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loader.h"

static int count(struct dl_phdr_info *info, size_t size, void *data)
{
	++*(int *)data;
	return 0;
}

static int last(struct dl_phdr_info *info, size_t size, void *data)
{
	return 7;
}

static void test_list(void **state)
{
	int all = 0, ours = 0, unasked = 0;

	dl_iterate_phdr(count, &all);
	assert_int_equal(loader_each(count, &ours), 0);
	assert_int_equal(loader_each_unasked(count, &unasked), 0);
	assert_true(all > 1 && ours == all && unasked == all);
	assert_int_equal(loader_each(last, NULL), 7);
}

static _Atomic int inside, leave;

static int stay(struct dl_phdr_info *info, size_t size, void *data)
{
	inside = 1;
	for (int i = 0; !leave && i < 100; i++)
		usleep(1000);
	inside = 0;
	return 1;
}

static void *stays(void *arg)
{
	loader_each(stay, NULL);
	return arg;
}

static _Atomic int counted;

static void *counts(void *arg)
{
	int n = 0;

	loader_each(count, &n);
	counted = n;
	return arg;
}

/* The one who forks waits for who is there, and may go there itself; others wait for it. */
static void test_fork(void **state)
{
	pthread_t t;
	int n = 0;

	assert_int_equal(pthread_create(&t, NULL, stays, NULL), 0);
	while (!inside)
		sched_yield();
	leave = 1;
	loader_before_fork();
	assert_int_equal(inside, 0);
	pthread_join(t, NULL);
	loader_each(count, &n);
	assert_true(n > 1);
	loader_after_fork(false);
	assert_int_equal(pthread_create(&t, NULL, counts, NULL), 0);
	pthread_join(t, NULL);
	assert_int_equal(counted, n);
}

/* Who is there for ever, as one whom the forking handler interrupted, is not waited for for ever.
 */
static void test_patience(void **state)
{
	pthread_t t;

	leave = 0;
	assert_int_equal(pthread_create(&t, NULL, stays, NULL), 0);
	while (!inside)
		sched_yield();
	loader_before_fork();
	loader_after_fork(false);
	leave = 1;
	pthread_join(t, NULL);
}

static void test_child(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int asked = 0, unasked = 0;

		loader_before_fork();
		loader_after_fork(true);
		loader_each_unasked(count, &unasked);
		loader_each(count, &asked);
		_exit(!unasked && asked > 1 ? 5 : 6);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_list),
	    cmocka_unit_test(test_fork),
	    cmocka_unit_test(test_patience),
	    cmocka_unit_test(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
