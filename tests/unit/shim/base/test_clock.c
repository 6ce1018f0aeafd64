/* Pairs of readings of two clocks, with pauses between the readings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/sys.h"
#include "whyoom/trace.h"

/* A clock with 1 tick a nanosecond. Each reading takes 50 ns, and longer as `delay` says. */
static uint64_t time_ns;
static unsigned readings;
static uint64_t delay[32]; /* before the reading of this number */

static uint64_t reading(void)
{
	time_ns += 50 + delay[readings++ % 32];
	return time_ns;
}

static void start(void)
{
	time_ns = 1000000;
	readings = 0;
	for (int i = 0; i < 32; i++)
		delay[i] = 0;
}

static void one_try_when_nothing_disturbs(void **state)
{
	struct clock_pair p;

	start();
	p = clock_bracket(reading, reading, 1000);
	assert_int_equal(readings, 3);
	assert_int_equal(p.mono_ns, 1000100);
	assert_int_equal(p.ticks, p.mono_ns);
}

/* Whichever reading is late, the delay of 10 ms does not get into the pair. */
static void a_pause_is_noticed(void **state)
{
	for (unsigned late = 1; late < 3; late++) {
		struct clock_pair p;

		start();
		delay[late] = 10000000;
		p = clock_bracket(reading, reading, 1000);
		assert_int_equal(readings, 6);
		assert_true(p.ticks - p.mono_ns + 500 <= 1000);
	}
	start();
	delay[0] = 10000000; /* before the first reading: does not matter */
	assert_int_equal(clock_bracket(reading, reading, 1000).ticks, 11000100);
	assert_int_equal(readings, 3);
}

static void the_tightest_of_a_few(void **state)
{
	struct clock_pair p;

	start();
	for (int i = 0; i < 32; i++)
		delay[i] = i % 3 ? 5000 : 0;
	delay[3 * 3 + 1] = delay[3 * 3 + 2] = 700; /* the fourth */
	p = clock_bracket(reading, reading, 1000);
	assert_true(readings <= 3 * 8); /* it ends */
	assert_int_equal(p.ticks, p.mono_ns);
	assert_int_equal(p.ticks, 1000000 + 3 * 10150 + 100 + 700);
}

static uint64_t backwards(void)
{
	return time_ns -= 50;
}

static void a_counter_that_goes_backwards_ends_too(void **state)
{
	start();
	clock_bracket(backwards, reading, 0);
	assert_true(readings <= 8);
}

static void agrees_with_the_system(void **state)
{
	struct clock_pair a, b;
	uint64_t before, after;
	double ns;

	clock_init();
	a = clock_now();
	before = sys_clock_ns(CLOCK_MONOTONIC);
	assert_true(a.mono_ns <= before);
	for (int i = 0; i < 100; i++) {
		uint64_t t = clock_ticks();

		b = clock_now();
		after = sys_clock_ns(CLOCK_MONOTONIC);
		assert_true(b.ticks >= t && b.ticks <= clock_ticks());
		assert_true(b.mono_ns >= before && b.mono_ns <= after);
		before = after;
	}
	if (!tick_clock.hz)
		return;
	ns = (double)(b.ticks - a.ticks) * 1e9 / (double)tick_clock.hz;
	assert_true(ns <= (double)(b.mono_ns - a.mono_ns) * 1.01 + 1e6);
	assert_true(ns >= (double)(b.mono_ns - a.mono_ns) * 0.99 - 1e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_try_when_nothing_disturbs),
	    cmocka_unit_test(a_pause_is_noticed),
	    cmocka_unit_test(the_tightest_of_a_few),
	    cmocka_unit_test(a_counter_that_goes_backwards_ends_too),
	    cmocka_unit_test(agrees_with_the_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
