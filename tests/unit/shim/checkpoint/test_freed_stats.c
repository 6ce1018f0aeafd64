/*
 * test_gone.c - of what came and went the sums and the largest are told, of each period its own and
 * of merged ones those of both; those that tell most where there are too many; and none of a
 * parent's.
 */
#include "../under.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "checkpoint/freed_stats.h"

#define THREADS 4
#define TURNS 20000

static uint64_t birth = 1000;

static void went(uint32_t stack, uint64_t size, uint64_t mean)
{
	freed_stats_note(
	    &(struct live_block){.birth = birth++, .size = size, .mean = mean, .stack = stack});
}

static const struct gone *of(uint32_t period, uint32_t stack)
{
	uint32_t count;
	const struct gone *g = freed_stats_of(period, &count);

	for (uint32_t i = 0; i < count; i++)
		if (g[i].who == stack)
			return &g[i];
	return NULL;
}

static int begin(void **state)
{
	options.max_trace = 64 << 20;
	went(1, 1, 0);
	freed_stats_forked();
	(void)state;
	return 0;
}

static void test_a_period(void **state)
{
	uint64_t first = birth, life;
	uint32_t count;

	for (uint64_t i = 0; i < 100; i++)
		went(7, 1000 + i % 50, 0);
	went(8, 100, 100000); /* stands for many */
	went(0, 1 << 30, 0); /* of no stack */
	freed_stats_period_begin();
	went(7, 1 << 20, 0); /* of the next one */
	freed_stats_period_commit(0, UINT64_MAX);
	freed_stats_of(0, &count);
	assert_int_equal(count, 2);
	assert_int_equal(of(0, 7)->blocks, 100);
	assert_int_equal(of(0, 7)->bytes, 100 * 1000 + 2 * 49 * 25);
	assert_int_equal(of(0, 7)->largest, 1049);
	assert_int_equal(of(0, 7)->birth, first + 99); /* the latest of the two */
	life = of(0, 7)->longest / 1024;
	assert_true(life && of(0, 7)->life > 50 * life && of(0, 7)->life <= 100 * life);
	assert_in_range(of(0, 8)->blocks, 999, 1001);
	assert_int_equal(of(0, 8)->largest, 100);
	freed_stats_period_begin();
	freed_stats_period_commit(1, first);
	assert_int_equal(of(1, 7)->blocks, 1);
	assert_int_equal(of(1, 7)->birth, first); /* not after its end */
	assert_null(of(1, 8));
	freed_stats_period_begin();
	freed_stats_period_commit(2, UINT64_MAX);
	freed_stats_of(2, &count);
	assert_int_equal(count, 0);
	(void)state;
}

/* A checkpoint that is not made after all. */
static void test_goes_on(void **state)
{
	went(7, 10, 0);
	freed_stats_period_begin();
	freed_stats_period_abort();
	went(7, 10, 0);
	freed_stats_period_begin();
	freed_stats_period_commit(0, UINT64_MAX);
	assert_int_equal(of(0, 7)->blocks, 2);
	(void)state;
}

static void test_merged(void **state)
{
	for (uint32_t k = 0; k < 4; k++) {
		for (uint32_t i = 0; i <= k; i++)
			went(7, 100 * (k + 1), 0);
		went(k % 2 ? 9 : 8, 50, 0);
		freed_stats_period_begin();
		freed_stats_period_commit(k, UINT64_MAX);
	}
	freed_stats_merge(0, 1, 0);
	freed_stats_merge(2, 3, 1);
	assert_int_equal(of(0, 7)->blocks, 3);
	assert_int_equal(of(0, 7)->largest, 200);
	assert_int_equal(of(1, 7)->blocks, 7);
	assert_int_equal(of(1, 7)->bytes, 3 * 300 + 4 * 400);
	assert_int_equal(of(1, 7)->largest, 400);
	assert_int_equal(of(1, 8)->blocks, 1);
	assert_int_equal(of(1, 9)->blocks, 1);
	(void)state;
}

/* More stacks than there is room for, and than a period may have. */
static void test_many(void **state)
{
	uint32_t count;

	options.max_trace = 4 << 20;
	assert_int_equal(freed_stats_most(), 16);
	went(100000, 1 << 20, 0); /* the largest */
	for (uint32_t i = 0; i < 300; i++)
		went(100001, 30000, 0); /* the most */
	for (uint32_t i = 1; i <= 50000; i++)
		went(i, 16, 0);
	freed_stats_period_begin();
	freed_stats_period_commit(0, UINT64_MAX);
	freed_stats_of(0, &count);
	assert_int_equal(count, 16);
	assert_int_equal(of(0, 100000)->largest, 1 << 20);
	assert_int_equal(of(0, 100001)->bytes, 9000000);
	options.max_trace = 1 << 20;
	assert_int_equal(freed_stats_most(), 4);
	options.max_trace = 1ull << 40;
	assert_int_equal(freed_stats_most(), FREED_STATS_STACKS);
	(void)state;
}

static void test_child(void **state)
{
	uint32_t count;

	went(7, 10, 0);
	freed_stats_period_begin();
	freed_stats_period_commit(0, UINT64_MAX);
	went(7, 10, 0);
	freed_stats_forked();
	freed_stats_of(0, &count);
	assert_int_equal(count, 0);
	freed_stats_period_begin();
	freed_stats_period_commit(0, UINT64_MAX);
	freed_stats_of(0, &count);
	assert_int_equal(count, 0);
	(void)state;
}

static const struct gone *of_space(uint32_t period, uint32_t space, uint32_t stack)
{
	uint32_t count;
	const struct gone *g = freed_stats_of(period, &count);

	for (uint32_t i = 0; i < count; i++)
		if (g[i].who == ((uint64_t)space << 32 | stack))
			return &g[i];
	return NULL;
}

/* Other spaces' blocks are not the host's of the same stack, and neither takes the other's room;
 * those whose release was before a period's end are of that one. */
static void test_spaces(void **state)
{
	uint64_t before = clock_ticks();
	uint32_t count, of_host = 0;

	options.max_trace = 1 << 20;
	assert_int_equal(freed_stats_most(), 4);
	went(7, 100, 0);
	for (uint32_t i = 0; i < 20; i++)
		freed_stats_note_of(193, 7 + i, (1 << 20) + i, 1000, 1500);
	freed_stats_note_of(1, 0, 1 << 30, 1000, 1500); /* of no stack */
	freed_stats_period_begin();
	freed_stats_note_of(193, 7 + 19, 1 << 21, before - 1, before);
	freed_stats_note_of(193, 7 + 19, 1 << 22, 1000, clock_ticks() + 1000);
	freed_stats_period_commit(0, UINT64_MAX);
	freed_stats_of(0, &count);
	assert_int_equal(count, 4);
	for (uint32_t i = 0; i < count; i++)
		of_host += !(freed_stats_of(0, &count)[i].who >> 32);
	assert_int_equal(of_host, 1);
	assert_int_equal(of_space(0, 0, 7)->bytes, 100);
	assert_int_equal(of_space(0, 193, 7 + 19)->blocks, 2);
	assert_int_equal(of_space(0, 193, 7 + 19)->largest, 1 << 21);
	assert_int_equal(of_space(0, 193, 7 + 18)->longest, 500);
	freed_stats_period_begin();
	freed_stats_period_commit(1, UINT64_MAX);
	freed_stats_of(1, &count);
	assert_int_equal(count, 1);
	assert_int_equal(of_space(1, 193, 7 + 19)->largest, 1 << 22);
	(void)state;
}

static void *busy(void *arg)
{
	for (uint64_t i = 1; i <= TURNS; i++)
		freed_stats_note(&(struct live_block){
		    .birth = i, .size = i, .stack = 1 + (uint32_t)(i % 3 + (uintptr_t)arg % 2)});
	return NULL;
}

/* Whoever adds, all of it is there. */
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
		blocks += of(0, stack)->blocks;
		bytes += of(0, stack)->bytes;
		if (of(0, stack)->largest > largest)
			largest = of(0, stack)->largest;
	}
	assert_int_equal(blocks, THREADS * TURNS);
	assert_int_equal(bytes, THREADS * (uint64_t)TURNS * (TURNS + 1) / 2);
	assert_int_equal(largest, TURNS);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_a_period, begin),
	    cmocka_unit_test_setup(test_goes_on, begin),
	    cmocka_unit_test_setup(test_merged, begin),
	    cmocka_unit_test_setup(test_many, begin),
	    cmocka_unit_test_setup(test_child, begin),
	    cmocka_unit_test_setup(test_spaces, begin),
	    cmocka_unit_test_setup(test_threads, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
