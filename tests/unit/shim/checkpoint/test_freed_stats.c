/* test_freed_stats.c - each period has the sums and the largest block of its own stacks, and
 * merged periods those of both; with too many stacks the top ones are kept; a child has none of
 * its parent's. */
#include "../under.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "checkpoint/freed_stats.h"

#define THREADS 4
#define TURNS 20000

static uint64_t birth = 1000;

static void freed(uint32_t stack, uint64_t size, uint64_t mean)
{
	freed_stats_add_host(
	    &(struct live_block){.birth = birth++, .size = size, .mean = mean, .stack = stack});
}

static const struct freed_stack *stats_of(uint32_t period, uint32_t stack)
{
	uint32_t count;
	const struct freed_stack *g = freed_stats_period(period, &count);

	for (uint32_t i = 0; i < count; i++)
		if (g[i].key == stack)
			return &g[i];
	return NULL;
}

static int begin(void **state)
{
	options.max_trace = 64 << 20;
	freed(1, 1, 0);
	freed_stats_forked();
	return 0;
}

static void test_a_period(void **state)
{
	uint64_t first = birth, lifetime;
	uint32_t count;

	for (uint64_t i = 0; i < 100; i++)
		freed(7, 1000 + i % 50, 0);
	freed(8, 100, 100000); /* stands for many */
	freed(0, 1 << 30, 0); /* of no stack */
	freed_stats_period_begin();
	freed(7, 1 << 20, 0); /* belongs to the next period */
	freed_stats_period_commit(0, UINT64_MAX);
	freed_stats_period(0, &count);
	assert_int_equal(count, 2);
	assert_int_equal(stats_of(0, 7)->blocks, 100);
	assert_int_equal(stats_of(0, 7)->bytes, 100 * 1000 + 2 * 49 * 25);
	assert_int_equal(stats_of(0, 7)->largest, 1049);
	assert_int_equal(stats_of(0, 7)->birth, first + 99); /* the latest of the two */
	lifetime = stats_of(0, 7)->longest_lifetime / 1024;
	assert_true(lifetime && stats_of(0, 7)->lifetime > 50 * lifetime &&
		    stats_of(0, 7)->lifetime <= 100 * lifetime);
	assert_in_range(stats_of(0, 8)->blocks, 999, 1001);
	assert_int_equal(stats_of(0, 8)->largest, 100);
	freed_stats_period_begin();
	freed_stats_period_commit(1, first);
	assert_int_equal(stats_of(1, 7)->blocks, 1);
	assert_int_equal(stats_of(1, 7)->birth, first); /* not after its end */
	assert_null(stats_of(1, 8));
	freed_stats_period_begin();
	freed_stats_period_commit(2, UINT64_MAX);
	freed_stats_period(2, &count);
	assert_int_equal(count, 0);
}

/* A checkpoint that fails leaves the period as it was. */
static void test_abort(void **state)
{
	freed(7, 10, 0);
	freed_stats_period_begin();
	freed_stats_period_abort();
	freed(7, 10, 0);
	freed_stats_period_begin();
	freed_stats_period_commit(0, UINT64_MAX);
	assert_int_equal(stats_of(0, 7)->blocks, 2);
}

static void test_merged(void **state)
{
	for (uint32_t k = 0; k < 4; k++) {
		for (uint32_t i = 0; i <= k; i++)
			freed(7, 100 * (k + 1), 0);
		freed(k % 2 ? 9 : 8, 50, 0);
		freed_stats_period_begin();
		freed_stats_period_commit(k, UINT64_MAX);
	}
	freed_stats_merge(0, 1, 0);
	freed_stats_merge(2, 3, 1);
	assert_int_equal(stats_of(0, 7)->blocks, 3);
	assert_int_equal(stats_of(0, 7)->largest, 200);
	assert_int_equal(stats_of(1, 7)->blocks, 7);
	assert_int_equal(stats_of(1, 7)->bytes, 3 * 300 + 4 * 400);
	assert_int_equal(stats_of(1, 7)->largest, 400);
	assert_int_equal(stats_of(1, 8)->blocks, 1);
	assert_int_equal(stats_of(1, 9)->blocks, 1);
}

/* More stacks than the table holds, and than a period may keep. */
static void test_many(void **state)
{
	uint32_t count;

	options.max_trace = 4 << 20;
	assert_int_equal(freed_stats_stacks_max(), 16);
	freed(100000, 1 << 20, 0); /* the largest */
	for (uint32_t i = 0; i < 300; i++)
		freed(100001, 30000, 0); /* the most */
	for (uint32_t i = 1; i <= 50000; i++)
		freed(i, 16, 0);
	freed_stats_period_begin();
	freed_stats_period_commit(0, UINT64_MAX);
	freed_stats_period(0, &count);
	assert_int_equal(count, 16);
	assert_int_equal(stats_of(0, 100000)->largest, 1 << 20);
	assert_int_equal(stats_of(0, 100001)->bytes, 9000000);
	options.max_trace = 1 << 20;
	assert_int_equal(freed_stats_stacks_max(), 4);
	options.max_trace = 1ull << 40;
	assert_int_equal(freed_stats_stacks_max(), FREED_STATS_STACKS);
}

static void test_child(void **state)
{
	uint32_t count;

	freed(7, 10, 0);
	freed_stats_period_begin();
	freed_stats_period_commit(0, UINT64_MAX);
	freed(7, 10, 0);
	freed_stats_forked();
	freed_stats_period(0, &count);
	assert_int_equal(count, 0);
	freed_stats_period_begin();
	freed_stats_period_commit(0, UINT64_MAX);
	freed_stats_period(0, &count);
	assert_int_equal(count, 0);
}

static const struct freed_stack *stats_of_space(uint32_t period, uint32_t space, uint32_t stack)
{
	uint32_t count;
	const struct freed_stack *g = freed_stats_period(period, &count);

	for (uint32_t i = 0; i < count; i++)
		if (g[i].key == ((uint64_t)space << 32 | stack))
			return &g[i];
	return NULL;
}

/* Blocks of other spaces are kept apart from the host's of the same stack, and neither crowds out
 * the other; a release before a period's end counts in that period. */
static void test_spaces(void **state)
{
	uint64_t before = clock_ticks();
	uint32_t count, of_host = 0;

	options.max_trace = 1 << 20;
	assert_int_equal(freed_stats_stacks_max(), 4);
	freed(7, 100, 0);
	for (uint32_t i = 0; i < 20; i++)
		freed_stats_add_space(193, 7 + i, (1 << 20) + i, 1000, 1500);
	freed_stats_add_space(1, 0, 1 << 30, 1000, 1500); /* of no stack */
	freed_stats_period_begin();
	freed_stats_add_space(193, 7 + 19, 1 << 21, before - 1, before);
	freed_stats_add_space(193, 7 + 19, 1 << 22, 1000, clock_ticks() + 1000);
	freed_stats_period_commit(0, UINT64_MAX);
	freed_stats_period(0, &count);
	assert_int_equal(count, 4);
	for (uint32_t i = 0; i < count; i++)
		of_host += !(freed_stats_period(0, &count)[i].key >> 32);
	assert_int_equal(of_host, 1);
	assert_int_equal(stats_of_space(0, 0, 7)->bytes, 100);
	assert_int_equal(stats_of_space(0, 193, 7 + 19)->blocks, 2);
	assert_int_equal(stats_of_space(0, 193, 7 + 19)->largest, 1 << 21);
	assert_int_equal(stats_of_space(0, 193, 7 + 18)->longest_lifetime, 500);
	freed_stats_period_begin();
	freed_stats_period_commit(1, UINT64_MAX);
	freed_stats_period(1, &count);
	assert_int_equal(count, 1);
	assert_int_equal(stats_of_space(1, 193, 7 + 19)->largest, 1 << 22);
}

static void *busy(void *arg)
{
	for (uint64_t i = 1; i <= TURNS; i++)
		freed_stats_add_host(&(struct live_block){
		    .birth = i, .size = i, .stack = 1 + (uint32_t)(i % 3 + (uintptr_t)arg % 2)});
	return NULL;
}

/* Blocks of all threads are counted. */
static void test_threads(void **state)
{
	pthread_t threads[THREADS];
	uint64_t blocks = 0, bytes = 0, largest = 0;

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, busy, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	freed_stats_period_begin();
	freed_stats_period_commit(0, UINT64_MAX);
	for (uint32_t stack = 1; stack <= 4; stack++) {
		blocks += stats_of(0, stack)->blocks;
		bytes += stats_of(0, stack)->bytes;
		if (stats_of(0, stack)->largest > largest)
			largest = stats_of(0, stack)->largest;
	}
	assert_int_equal(blocks, THREADS * TURNS);
	assert_int_equal(bytes, THREADS * (uint64_t)TURNS * (TURNS + 1) / 2);
	assert_int_equal(largest, TURNS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_a_period, begin),
	    cmocka_unit_test_setup(test_abort, begin),
	    cmocka_unit_test_setup(test_merged, begin),
	    cmocka_unit_test_setup(test_many, begin),
	    cmocka_unit_test_setup(test_child, begin),
	    cmocka_unit_test_setup(test_spaces, begin),
	    cmocka_unit_test_setup(test_threads, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
