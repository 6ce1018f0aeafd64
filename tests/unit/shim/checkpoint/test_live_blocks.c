/* test_live_blocks.c - a block that was added is found and removed once, by any thread and
 * whatever the size of the table; a block that was not added is never found. */
#include "../under.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "checkpoint/live_blocks.h"

#define MANY 200000u
#define THREADS 4u

static void *nth(uint64_t i)
{
	return (void *)(0x7f0000000000 + i * 48);
}

static bool add(const void *block)
{
	return live_blocks_add(block, &(struct live_block){.birth = 1, .size = 16});
}

static void test_none(void **state)
{
	assert_false(live_blocks_maybe(nth(1)));
	assert_false(live_blocks_take(nth(1), NULL));
	assert_false(live_blocks_take(NULL, NULL));
}

static void test_once(void **state)
{
	assert_true(add(nth(1)));
	assert_true(add(nth(1)));
	assert_true(live_blocks_maybe(nth(1)));
	assert_true(live_blocks_take(nth(1), NULL));
	assert_false(live_blocks_take(nth(1), NULL));
	/* adding twice did not raise the filter twice */
	assert_false(live_blocks_maybe(nth(1)));
}

/* Resampling changes the very block that was shown, and no other that came there since. */
static void test_resample(void **state)
{
	struct live_blocks_totals before = live_blocks_totals(), now;
	struct live_block info = {.birth = 7, .size = 100, .mean = 1000}, was;

	for (uint64_t i = 0; i < 3; i++)
		assert_true(live_blocks_add(nth(i), &info));
	info.mean = 0;
	assert_true(live_blocks_add(nth(3), &info));
	now = live_blocks_totals();
	assert_int_equal(now.live_sampled - before.live_sampled, 3);
	live_blocks_resample((uintptr_t)nth(0), 7, 0);
	live_blocks_resample((uintptr_t)nth(1), 7, 2000);
	live_blocks_resample((uintptr_t)nth(2), 6, 0);
	live_blocks_resample((uintptr_t)nth(3), 7, 2000);
	assert_false(live_blocks_take(nth(0), NULL));
	assert_true(live_blocks_take(nth(1), &was));
	assert_int_equal(was.mean, 2000);
	assert_true(live_blocks_take(nth(2), &was));
	assert_int_equal(was.mean, 1000);
	assert_true(live_blocks_take(nth(3), &was));
	assert_int_equal(was.mean, 0);
	now = live_blocks_totals();
	assert_int_equal(now.live, before.live);
	assert_int_equal(now.live_sampled, before.live_sampled);
	assert_int_equal(now.live_bytes, before.live_bytes);
	/* a block that resampling removed does not count as released */
	assert_int_equal(now.released - before.released, 3);
	assert_false(live_blocks_maybe(nth(0)));
}

static void test_growth(void **state)
{
	for (uint64_t i = 0; i < MANY; i++)
		assert_true(add(nth(i)));
	for (uint64_t i = 0; i < MANY; i += 2)
		assert_true(live_blocks_take(nth(i), NULL));
	for (uint64_t i = 0; i < MANY; i++)
		assert_int_equal(live_blocks_take(nth(i), NULL), i % 2);
	for (uint64_t i = 0; i < MANY; i++)
		assert_false(live_blocks_take(nth(i), NULL));
}

static void *add_many(void *arg)
{
	uint64_t first = ((uintptr_t)arg + 1) * 10000000ull;

	for (uint64_t i = 0; i < MANY; i++)
		if (!add(nth(first + i)))
			return "add";
	for (uint64_t i = 0; i < MANY; i++)
		if (!live_blocks_take(nth(first + i), NULL))
			return "take";
	return NULL;
}

/* Threads that find no room wait for the one that grows the table. Runs first, as the table never
 * shrinks. */
static void test_growth_by_threads(void **state)
{
	pthread_t threads[THREADS];
	void *failed;

	clock_init();
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_many, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

static uint64_t mail[THREADS][MANY / THREADS]; /* blocks that a thread hands to the next */
static unsigned posted[THREADS];

/* Acquires blocks for one neighbour, and releases those of the other. */
static void *trade(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg, from = (me + 1) % THREADS;

	for (unsigned i = 0; i < MANY / THREADS; i++) {
		void *own = nth(1000000ull * (me + 1) + i), *other;

		if (!add(own))
			return "add";
		mail[me][i] = (uint64_t)(uintptr_t)own;
		__atomic_store_n(&posted[me], i + 1, __ATOMIC_RELEASE);
		if (i >= __atomic_load_n(&posted[from], __ATOMIC_ACQUIRE))
			continue;
		other = (void *)(uintptr_t)__atomic_exchange_n(&mail[from][i], 0, __ATOMIC_RELAXED);
		if (other && !live_blocks_take(other, NULL))
			return "take";
	}
	return NULL;
}

static void test_threads(void **state)
{
	pthread_t threads[THREADS];
	void *failed;

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, trade, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < MANY / THREADS; i++)
			if (mail[t][i])
				assert_true(live_blocks_take((void *)(uintptr_t)mail[t][i], NULL));
}

static struct live_block nth_info(uint64_t i)
{
	return (struct live_block){.birth = 100 + i,
	    .size = 3 * i + 1,
	    .mean = i % 3 ? 4096 : 0,
	    .stack = (uint32_t)i + 7,
	    .thread = (uint32_t)i % 11,
	    .tid = (uint32_t)i % 13,
	    .api = i % 5};
}

struct seen {
	uint64_t count, sum;
	bool wrong;
};

static bool check_shown(void *arg, uint64_t address, const struct live_block *info)
{
	struct seen *s = arg;
	uint64_t i = info->birth - 100;
	struct live_block expected = nth_info(i);

	s->wrong |= (uint64_t)(uintptr_t)nth(i) != address || expected.size != info->size ||
		    expected.mean != info->mean || expected.stack != info->stack ||
		    expected.thread != info->thread || expected.tid != info->tid ||
		    expected.api != info->api;
	s->count++;
	s->sum += i;
	return true;
}

/* Attributes come back unchanged, of all blocks and of one; blocks after `until` are not shown. */
static void test_info(void **state)
{
	struct live_block info;
	struct seen s = {0};
	struct live_blocks_totals now;

	for (uint64_t i = 0; i < 20000; i++) {
		info = nth_info(i);
		assert_true(live_blocks_add(nth(i), &info));
	}
	for (uint64_t i = 0; i < 20000; i += 2)
		assert_true(live_blocks_take(nth(i), NULL));
	assert_true(live_blocks_each(100 + 9999, check_shown, &s));
	assert_false(s.wrong);
	assert_int_equal(s.count, 5000);
	assert_int_equal(s.sum, 5000ull * 5000);
	assert_true(live_blocks_take(nth(77), &info));
	assert_int_equal(info.size, 3 * 77 + 1);
	assert_int_equal(info.birth, 177);
	/* inherited blocks are not the child's own */
	live_blocks_forked(100 + 10000);
	s = (struct seen){0};
	assert_true(live_blocks_each(UINT64_MAX, check_shown, &s));
	assert_int_equal(s.count, 5000);
	for (uint64_t i = 1; i < 20000; i += 2)
		assert_int_equal(live_blocks_take(nth(i), NULL), i != 77);
	now = live_blocks_period_begin();
	assert_int_equal(now.live_bytes, -now.released_bytes);
	live_blocks_forked(0);
}

/* An address whose release was missed is there once, with its latest acquisition. */
static void test_again(void **state)
{
	struct live_block info = nth_info(1);
	struct live_blocks_totals now;

	live_blocks_forked(0);
	assert_true(live_blocks_add(nth(1), &info));
	info = nth_info(3);
	assert_true(live_blocks_add(nth(1), &info));
	now = live_blocks_period_begin();
	live_blocks_period_commit(&now);
	assert_int_equal(now.live, 1);
	assert_int_equal(now.acquired, 2);
	assert_int_equal(now.released, 1);
	assert_int_equal(now.live_bytes, info.size); /* of mean 0 */
	assert_true(live_blocks_take(nth(1), &info));
	assert_int_equal(info.birth, 103);
	assert_false(live_blocks_take(nth(1), NULL));
	now = live_blocks_period_begin();
	assert_int_equal(now.live, 0);
	assert_int_equal(now.peak_bytes, 10);
	assert_int_equal(now.acquired, 0); /* those two belong to the period before */
	assert_int_equal(now.released, 1);
	assert_int_equal(live_blocks_totals().peak_bytes, 0);
	/* a block that comes after the period's end belongs to the next one */
	assert_true(live_blocks_add(nth(5), &info));
	live_blocks_period_commit(&now);
	assert_int_equal(live_blocks_totals().acquired, 1);
	assert_int_equal(live_blocks_totals().released, 0);
	assert_true(live_blocks_take(nth(5), NULL));
	/* aborted: the period keeps its peak */
	now = live_blocks_period_begin();
	assert_int_equal(now.peak_bytes, info.size);
	assert_int_equal(live_blocks_totals().peak_bytes, 0);
	live_blocks_period_abort(&now);
	assert_int_equal(live_blocks_totals().peak_bytes, info.size);
	assert_int_equal(live_blocks_totals().acquired, 1);
}

static bool stop;

static void *churn(void *arg)
{
	uint64_t from = 100000 + 1000 * (uintptr_t)arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		for (uint64_t i = from; i < from + 50; i++) {
			struct live_block info = nth_info(i);

			if (!live_blocks_add(nth(i), &info) || !live_blocks_take(nth(i), NULL))
				return "lost";
		}
	return NULL;
}

/* While other threads add and take, each lasting block is shown once, and none in part. */
static void test_each(void **state)
{
	pthread_t threads[THREADS];
	void *failed;

	for (uint64_t i = 0; i < 1000; i++) {
		struct live_block info = nth_info(i);

		assert_true(live_blocks_add(nth(i), &info));
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
	for (int round = 0; round < 200; round++) {
		struct seen s = {0};

		assert_true(live_blocks_each(100 + 999, check_shown, &s));
		assert_int_equal(s.count, 1000);
		assert_true(live_blocks_each(UINT64_MAX, check_shown, &s));
		assert_false(s.wrong);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	for (uint64_t i = 0; i < 1000; i++)
		assert_true(live_blocks_take(nth(i), NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_growth_by_threads),
	    cmocka_unit_test(test_none),
	    cmocka_unit_test(test_once),
	    cmocka_unit_test(test_resample),
	    cmocka_unit_test(test_growth),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_info),
	    cmocka_unit_test(test_again),
	    cmocka_unit_test(test_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
