/* test_rate.c - the sample becomes coarser while the trace grows too fast, finer again later,
 * within limits; a pause or mode full is not touched. */
#include "../under.h"

#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/shim_state.h"
#include "sampling/control.h"
#include "sampling/rate.h"
#include "sampling/sampler.h"

static uint64_t now;

static void begin(bool sampled, uint64_t max)
{
	memset(&sampler, 0, sizeof(sampler));
	assert_int_equal(under_begin(1 << 30), 0);
	options.max_rate = max;
	sampler_set(sampled, 4096, 1 << 16);
	control_forked();
	rate_forked();
	/* forget an earlier test's command */
	trace_file_header->control.command = sampled ? TRACE_CONTROL_SAMPLED : TRACE_CONTROL_FULL;
	trace_file_header->control.every = 4096;
	trace_file_header->control.exact_from = 1 << 16;
	trace_file_header->control.asked = 1;
	assert_true(control_follow());
	now += tick_clock.ticks_100ms * 100;
	assert_false(rate_adjust(now, &(uint64_t){0})); /* a window begins */
}

/* A tenth of a second in which `bytes` are written. */
static bool tenth(uint64_t bytes)
{
	uint64_t grown = 0;

	rate_add(bytes);
	now += tick_clock.ticks_100ms;
	return rate_adjust(now, &grown) && grown;
}

static void test_coarser_and_finer(void **state)
{
	unsigned changes = 0;

	begin(true, 1 << 20);
	for (int i = 0; i < 20; i++)
		assert_false(tenth(100 << 10)); /* just below */
	assert_int_equal(sampler.mean, 4096);
	/* eight times as fast: noticed before the second ends */
	for (int i = 0; i < 2; i++)
		changes += tenth(800 << 10);
	assert_int_equal(changes, 1);
	assert_int_equal(sampler.mean, 4096 << 3);
	assert_int_equal(sampler.exact_from, 1 << 19);
	/* at the limit: stays */
	for (int i = 0; i < 30; i++)
		assert_false(tenth(80 << 10));
	/* then it becomes fine again */
	for (int i = 0; i < 50; i++)
		changes += tenth(10 << 10);
	assert_int_equal(changes, 4);
	assert_int_equal(sampler.mean, 4096);
	assert_int_equal(sampler.exact_from, 1 << 16);
	under_end();
}

static void test_bounds(void **state)
{
	begin(true, 1);
	for (int i = 0; i < 100; i++)
		tenth(1ull << 40);
	assert_true(sampler.mean < TRACE_SIZE_LIMIT && sampler.mean > 1ull << 32);
	assert_true(sampler.exact_from < TRACE_SIZE_LIMIT);
	for (int i = 0; i < 1000; i++)
		tenth(0);
	assert_int_equal(sampler.mean, 4096);
	under_end();
}

static void test_untouched(void **state)
{
	begin(true, 0); /* no limit */
	for (int i = 0; i < 30; i++)
		assert_false(tenth(1 << 30));
	assert_int_equal(sampler.mean, 4096);
	under_end();
	begin(false, 1 << 10); /* each block is recorded, and stays so */
	for (int i = 0; i < 30; i++)
		assert_false(tenth(1 << 30));
	assert_false(sampler.on);
	under_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_coarser_and_finer),
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_untouched),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
