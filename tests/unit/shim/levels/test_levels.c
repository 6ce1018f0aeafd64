/* test_levels.c - levels agree with libc and /proc. */
#include "../under.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shim_state.h"
#include "levels/levels.h"

static uint64_t value(const struct level *levels, unsigned count, uint32_t key)
{
	for (unsigned i = 0; i < count; i++)
		if (levels[i].key == key)
			return levels[i].value;
	return UINT64_MAX;
}

static uint64_t status(const char *name)
{
	char line[200];
	unsigned long kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), ": %lu", &kb);
	fclose(f);
	return kb * 1024ull;
}

static void test_process(void **state)
{
	struct level levels[LEVELS_MAX];
	struct rlimit old, limit = {1ull << 40, 0};
	unsigned n;
	char *p = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, 64 << 20);
	shim.threads_started = 7;
	getrlimit(RLIMIT_AS, &old);
	limit.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_AS, &limit);
	n = levels_read(levels, true);
	assert_in_range(n, 10, LEVELS_MAX);
	assert_in_range(value(levels, n, TRACE_LEVEL_RSS), 64 << 20, status("VmRSS") + (8 << 20));
	assert_in_range(value(levels, n, TRACE_LEVEL_VSIZE), status("VmSize") - (8 << 20),
	    status("VmSize") + (8 << 20));
	assert_int_equal(value(levels, n, TRACE_LEVEL_DATA), status("VmData"));
	assert_in_range(value(levels, n, TRACE_LEVEL_RSS_ANON), 64 << 20, 1 << 30);
	assert_int_equal(value(levels, n, TRACE_LEVEL_THREADS), 1);
	assert_int_equal(value(levels, n, TRACE_LEVEL_THREADS_STARTED), 7);
	assert_int_equal(value(levels, n, TRACE_LEVEL_LIMIT_AS), 1ull << 40);
	setrlimit(RLIMIT_AS, &old);
	munmap(p, 64 << 20);
	n = levels_read(levels, false);
	assert_true(value(levels, n, TRACE_LEVEL_RSS) < 64 << 20);
	assert_int_equal(value(levels, n, TRACE_LEVEL_LIMIT_AS), UINT64_MAX);
}

/* Everything is read once when RSS has grown by an eighth and 16 MiB. */
static void test_growth(void **state)
{
	static const size_t mib[] = {8, 120, 125, 200, 210, 300};
	struct level levels[LEVELS_MAX];
	char *p = mmap(NULL, 300 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	levels_read(levels, false);
	for (size_t i = 0; i < sizeof(mib) / sizeof(mib[0]); i++) {
		unsigned n;

		memset(p, 1, mib[i] << 20);
		n = levels_read(levels, false);
		assert_int_equal(value(levels, n, TRACE_LEVEL_RSS_ANON) != UINT64_MAX, i % 2);
	}
	munmap(p, 300 << 20);
}

static bool stop, held;

static void hold(int signal)
{
	__atomic_store_n(&held, true, __ATOMIC_RELEASE);
	usleep(1000);
}

static void *reads(void *arg)
{
	struct level levels[LEVELS_MAX];

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		if (!__atomic_load_n(&held, __ATOMIC_RELAXED))
			levels_read(levels, true);
	return arg;
}

/* A thread that was refused memory waits for another one, which is interrupted while reading. */
static void test_waits(void **state)
{
	struct level levels[LEVELS_MAX];
	unsigned without = 0;
	pthread_t t;

	clock_init();
	signal(SIGUSR1, hold);
	assert_int_equal(pthread_create(&t, NULL, reads, NULL), 0);
	for (int i = 0; i < 40; i++) {
		usleep(100);
		pthread_kill(t, SIGUSR1);
		while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
			;
		without += !levels_read(levels, true);
		__atomic_store_n(&held, false, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	assert_in_range(without, 0, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_process),
	    cmocka_unit_test(test_growth), cmocka_unit_test(test_waits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
