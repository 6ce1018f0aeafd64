/* test_sampler.c - a block is chosen as often as its weight says, whatever its size and the
 * blocks before it; estimates are right on average and err as much as their own error says. */
#include "../under.h"

#include <math.h>
#include <string.h>

#include "base/shim_state.h"
#include "sampling/sampler.h"
#include "shim.h"

#define MEAN 4096u

static double chance(double size, double mean)
{
	return -expm1(-size / mean);
}

static uint64_t random_state;

static uint64_t next(void)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return random_state >> 33;
}

static void begin(uint64_t mean, uint64_t exact_from, uint64_t seed)
{
	memset(&sampler, 0, sizeof(sampler));
	memset(&sampler_self, 0, sizeof(sampler_self));
	shim.owner_is_libc = true;
	sampler_set(true, mean, exact_from);
	assert_int_equal(sampler_take(1), SAMPLER_EXACT); /* only the first */
	random_state = seed;
}

static enum sampler_take take(uint64_t size)
{
	return sampler_passes(size) ? SAMPLER_PASS : sampler_take(size);
}

/* The quantiles match the distribution. */
static void test_draw(void **state)
{
	static const double parts[] = {1e-6, 0.01, 0.25, 0.5, 0.75, 0.999};

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		uint64_t drawn = sampler_draw((uint64_t)(parts[i] * 0x1p64), 1u << 30);
		double expected = -log(parts[i]) * 0x1p30;

		assert_true(fabs((double)drawn - expected) <= 2 + expected * 1e-6);
	}
	assert_true(sampler_draw(UINT64_MAX, 1u << 30) >= 1);
	assert_true(sampler_draw(UINT64_MAX, 1u << 30) < 8);
	assert_true(sampler_draw(0, 1) >= 1);
	assert_true(sampler_draw(0, UINT64_MAX >> 8) > UINT64_MAX >> 8);
}

/* The weight of a recorded block, in integers. */
static void test_stands_for(void **state)
{
	static const uint64_t means[] = {1, 4096, 524288, 1ull << 40};

	for (unsigned m = 0; m < sizeof(means) / sizeof(means[0]); m++)
		for (uint64_t size = 1; size < 1ull << 44; size = size * 5 / 4 + 1) {
			double expected = (double)size / chance((double)size, (double)means[m]);

			assert_true(fabs((double)sampler_stands_for(size, means[m]) - expected) <=
				    2 + expected * 1e-3);
		}
	assert_int_equal(sampler_stands_for(12345, 0), 12345);
}

/* One size at a time, and in a mixture of sizes. */
static void test_chances(void **state)
{
	static const uint64_t sizes[] = {1, 16, 100, 1000, 4096, 20000};
	enum { SIZES = 6, ROUNDS = 300000 };
	double chosen[SIZES] = {0}, asked[SIZES] = {0};

	begin(MEAN, 1 << 20, 7);
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned which = next() % SIZES;

		asked[which]++;
		chosen[which] += take(sizes[which]) == SAMPLER_CHOSEN;
	}
	for (unsigned i = 0; i < SIZES; i++) {
		double p = chance((double)sizes[i], MEAN), deviation = sqrt(asked[i] * p * (1 - p));

		assert_true(fabs(chosen[i] - asked[i] * p) < 4.5 * deviation + 1);
	}
}

/* The remaining blocks are like a sample by the larger mean, reached at once or step by step. */
static void test_stays(void **state)
{
	static const uint64_t sizes[] = {1, 100, 4096, 20000, 100000};
	enum { TRIES = 200000 };

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double size = (double)sizes[i], p = chance(size, 8 * MEAN) / chance(size, MEAN);
		double deviation = sqrt(TRIES * p * (1 - p));
		unsigned once = 0, steps = 0;

		memset(&sampler_self, 0, sizeof(sampler_self));
		for (unsigned n = 0; n < TRIES; n++) {
			once += sampler_stays(sizes[i], MEAN, 8 * MEAN);
			steps += sampler_stays(sizes[i], MEAN, 2 * MEAN) &&
				 sampler_stays(sizes[i], 2 * MEAN, 8 * MEAN);
		}
		assert_true(fabs(once - TRIES * p) < 4.5 * deviation + 1e-3 * TRIES * p);
		assert_true(fabs(steps - TRIES * p) < 4.5 * deviation + 1e-3 * TRIES * p);
	}
}

static void test_exact(void **state)
{
	unsigned chosen = 0;

	begin(MEAN, 10000, 1);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(take(10000 + next() % 100000), SAMPLER_EXACT);
		assert_int_equal(take(0), SAMPLER_PASS);
	}
	/* a countdown longer than the threshold continues beyond it */
	begin(1 << 20, 4096, 1);
	for (unsigned i = 0; i < 1 << 20; i++)
		chosen += take(1024) == SAMPLER_CHOSEN;
	assert_true(fabs((double)chosen - 1024) < 150);
}

/* Sums over many seeds: right on average, and within their own error as often as a normal
 * distribution. */
static void test_unbiased(void **state)
{
	enum { SEEDS = 1600, BLOCKS = 4000 }; /* within 0.95 of them, give or take 0.006 */
	double off = 0, within = 0, variance_all = 0, truth_all = 0;

	for (unsigned seed = 1; seed <= SEEDS; seed++) {
		double truth = 0, estimate = 0, variance = 0;

		begin(MEAN, 1 << 20, seed);
		for (unsigned i = 0; i < BLOCKS; i++) {
			uint64_t size = 1 + next() % (1u << (1 + next() % 14));

			truth += (double)size;
			if (take(size) == SAMPLER_CHOSEN) {
				double p = chance((double)size, MEAN);

				estimate += (double)size / p;
				variance += (double)size * (double)size * (1 - p) / (p * p);
			}
		}
		off += estimate - truth;
		truth_all += truth;
		variance_all += variance;
		within += fabs(estimate - truth) <= 2 * sqrt(variance);
	}
	assert_true(fabs(off) < 3.5 * sqrt(variance_all));
	assert_true(sqrt(variance_all) < truth_all / 100);
	assert_true(within / SEEDS > 0.93);
}

/* Changes take effect; the table filters releases only if it holds every recorded block. */
static void test_changes(void **state)
{
	begin(1 << 30, 1 << 20, 3);
	assert_true(sampler.by_table && sampler.pass_frees);
	assert_int_equal(take(100), SAMPLER_PASS);
	sampler_set(true, 1, 1 << 20);
	while (take(100) == SAMPLER_PASS) /* the previous countdown runs out first */
		;
	assert_int_equal(take(100), SAMPLER_CHOSEN);
	sampler_set(false, 1, 1);
	assert_false(sampler.by_table);
	sampler_set(true, 1, 1 << 20);
	assert_false(sampler.by_table || sampler.pass_frees);
	/* not for an allocator that may call us by its public names */
	memset(&sampler, 0, sizeof(sampler));
	memset(&sampler_self, 0, sizeof(sampler_self));
	shim.owner_is_libc = false;
	sampler_set(true, MEAN, 1 << 20);
	sampler_take(1);
	for (unsigned i = 0; i < 100; i++) {
		assert_false(sampler_passes(1));
		sampler_take(1);
	}
	assert_false(sampler.pass_frees);
	shim.owner_is_libc = true;
}

static struct stack_start nowhere;

/* Chosen blocks are recorded with their mean, and only releases of recorded blocks are recorded. */
static void test_records(void **state)
{
	enum { BLOCKS = 20000, SIZE = 48 };
	uint64_t chosen = 0;
	struct under_trace *t;
	struct note n;

	assert_int_equal(under_begin(1 << 30), 0);
	begin(MEAN, 1 << 20, 5);
	n = note_enter(__builtin_return_address(0));
	for (uint64_t i = 0; i < BLOCKS; i++)
		note_alloc(n, TRACE_API_MALLOC, (void *)(0x10000 + i * SIZE), SIZE, &nowhere);
	note_alloc(n, TRACE_API_MALLOC, (void *)0x7f0000000010, 3 << 20, &nowhere);
	for (uint64_t i = 0; i < BLOCKS; i++)
		note_free(n, (void *)(0x10000 + i * SIZE), 0);
	/* a failed realloc: in the table before and after */
	note_free(n, (void *)0x7f0000000010, TRACE_FREE_REALLOC);
	note_unfree(n, (void *)0x7f0000000010);
	note_free(n, (void *)0x10000, 0);
	note_unfree(n, (void *)0x10000);
	note_free(n, (void *)0x7f0000000010, 0);
	note_free(n, (void *)0x7f0000000010, 0);
	note_leave(n);
	t = under_read();
	assert_int_equal(t->errors, 0);
	for (uint64_t i = 0; i < t->count; i++) {
		if (t->events[i].kind != TRACE_SAMPLED_ALLOC)
			continue;
		chosen++;
		assert_int_equal(t->events[i].field[1], SIZE);
		assert_int_equal(t->events[i].field[2], MEAN);
	}
	assert_true(fabs((double)chosen - BLOCKS * chance(SIZE, MEAN)) < 80);
	assert_int_equal(under_count(t, TRACE_ALLOC), 1);
	assert_int_equal(under_count(t, TRACE_UNFREE), 1);
	assert_int_equal(under_count(t, TRACE_FREE), chosen + 2);
	under_free(t);
	under_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_draw),
	    cmocka_unit_test(test_stands_for),
	    cmocka_unit_test(test_chances),
	    cmocka_unit_test(test_stays),
	    cmocka_unit_test(test_exact),
	    cmocka_unit_test(test_unbiased),
	    cmocka_unit_test(test_changes),
	    cmocka_unit_test(test_records),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
