/* test_loader.c - no thread walks the loader's list for us while another forks; in a forked
 * child none does unless it may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaded/loader.h"

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
	int all = 0, ours = 0, needed = 0;

	dl_iterate_phdr(count, &all);
	assert_true(loader_may_ask());
	assert_int_equal(loader_each(count, &ours), 0);
	assert_int_equal(loader_each_needed(count, &needed), 0);
	assert_true(all > 1 && ours == all && needed == all);
	loader_changing();
	assert_int_equal(loader_changed(), LOADER_CHANGED);
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

/* The forking thread waits for threads in the list and may walk it itself; others wait for it. */
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

/* The wait for a thread that never leaves the list, like one that the forking handler interrupted,
 * ends. */
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

static int at_us(struct dl_phdr_info *info, size_t size, void *data)
{
	struct dl_phdr_info found;

	if (!loader_find((uintptr_t)at_us, &found) || info->dlpi_addr != found.dlpi_addr)
		return 0;
	*(const void **)data = info->dlpi_phdr;
	return 1;
}

/* Without a lock, and in agreement with the loader. */
static void test_find(void **state)
{
	const void *phdr = NULL, *other = NULL;
	struct dl_phdr_info found;

	loader_init(dlsym(RTLD_DEFAULT, "_dl_find_object"));
	if (!loader_find((uintptr_t)at_us, &found))
		skip(); /* a C library without it */
	assert_int_equal(loader_each(at_us, &phdr), 1);
	assert_true(phdr && phdr == found.dlpi_phdr);
	assert_int_equal(loader_each_at(at_us, at_us, &other), 1);
	assert_ptr_equal(other, phdr);
	assert_false(loader_find(16, &found));
}

#define SAY(n, condition)                                                                          \
	if (!(condition))                                                                          \
	_exit(n)

/* Part of every C library, and needed by nothing. */
#define STRANGER "libBrokenLocale.so.1"

static void child(void)
{
	int asked = 0, needed = 0, now = 0;
	const void *phdr = NULL;
	struct dl_phdr_info found;
	void *handle;

	loader_before_fork();
	loader_after_fork(true);
	SAY(10, !loader_may_ask() && !loader_each(count, &asked) && !asked);
	loader_each_needed(count, &needed);
	SAY(11, needed > 1);
	if (loader_find((uintptr_t)at_us, &found))
		SAY(12, loader_each_at(at_us, at_us, &phdr) == 1 && phdr == found.dlpi_phdr);
	SAY(13, !loader_each_at((void *)16, count, &now) && !now);

	SAY(20, loader_changed() == LOADER_UNKNOWN); /* unknown before */
	loader_changing();
	handle = dlopen("libc.so.6", RTLD_NOW);
	SAY(21, handle && loader_changed() == LOADER_AS_BEFORE && !loader_may_ask());
	SAY(22, !dlclose(handle) && loader_changed() == LOADER_AS_BEFORE);
	loader_changing();
	SAY(23, !loader_may_ask());
	SAY(24, dlopen(STRANGER, RTLD_NOW));
	SAY(25, loader_changed() == LOADER_CHANGED && loader_may_ask());
	loader_each(count, &asked);
	SAY(26, asked == needed + 1);

	loader_forked(); /* the child's child */
	SAY(30, !loader_may_ask());
	loader_changing();
	handle = dlopen(STRANGER, RTLD_NOW | RTLD_NOLOAD);
	while (handle && !dlclose(handle) && loader_changed() == LOADER_AS_BEFORE)
		;
	SAY(31, loader_may_ask());
	_exit(5);
}

static void test_child(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		child();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_list),
	    cmocka_unit_test(test_fork),
	    cmocka_unit_test(test_patience),
	    cmocka_unit_test(test_find),
	    cmocka_unit_test(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
