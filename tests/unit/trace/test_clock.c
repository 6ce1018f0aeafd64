#include "trace/clock.h"
#include "unit.h"

static void interpolates(void **state)
{
	struct clock c = {0};

	/* 2 ns a tick, then 1 ns a tick; given out of order. */
	clock_add(&c, 3000, 1000 + 3000);
	clock_add(&c, 1000, 1000);
	clock_add(&c, 2000, 1000 + 2000);
	clock_finish(&c, 1000, 0);
	assert_int_equal(clock_ns(&c, 1000), 0);
	assert_int_equal(clock_ns(&c, 1500), 1000);
	assert_int_equal(clock_ns(&c, 2000), 2000);
	assert_int_equal(clock_ns(&c, 2500), 2500);
	/* Beyond: the rate of the two farthest apart, 1.5. */
	assert_in_range(clock_ns(&c, 5000), 3000 + 2999, 3000 + 3000);
	/* Back again, and before the first: not below zero. */
	assert_int_equal(clock_ns(&c, 1500), 1000);
	assert_int_equal(clock_ns(&c, 0), 0);
	clock_fini(&c);
}

static void nominal_rate_for_short_traces(void **state)
{
	struct clock c = {0};

	clock_add(&c, 100, 0);
	clock_add(&c, 101, 5000); /* a thousandth of the time that a rate needs */
	clock_finish(&c, 0, 500000000);
	assert_int_equal(clock_ns(&c, 1101), 7000);
	assert_int_equal(clock_ticks_of(&c, 100000), 50000);
	clock_fini(&c);
}

static void one_pair_and_none(void **state)
{
	struct clock c = {0};

	assert_int_equal(clock_ns(&c, 5), 0);
	assert_int_equal(clock_ticks_of(&c, 5), 1);
	clock_finish(&c, 0, 0);
	clock_add(&c, 10, 20);
	clock_finish(&c, 0, 0); /* no rate known: a tick is a nanosecond */
	assert_int_equal(clock_ns(&c, 15), 25);
	clock_fini(&c);
}

static void never_backwards(void **state)
{
	struct clock c = {0};
	uint64_t last = 0, seed = 7;

	for (int i = 0; i < 500; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		clock_add(&c, seed >> (i % 50), (seed * 31) >> (i % 60));
	}
	clock_add(&c, UINT64_MAX, UINT64_MAX);
	clock_add(&c, 0, UINT64_MAX);
	clock_finish(&c, 12345, 1);
	for (uint64_t t = 0; t < UINT64_MAX - (1ull << 52); t += 1ull << 52) {
		uint64_t ns = clock_ns(&c, t);
		assert_true(ns >= last);
		assert_true(ns <= INT64_MAX);
		last = ns;
	}
	clock_fini(&c);
}

static void long_traces_stay_exact(void **state)
{
	struct clock c = {0};
	uint64_t hz = 2999999997u, day = 86400;

	clock_add(&c, 1u << 30, 0);
	clock_add(&c, (1u << 30) + hz * day, day * 1000000000u);
	clock_finish(&c, 0, hz);
	for (uint64_t s = 0; s < day; s += 997) {
		uint64_t ns = clock_ns(&c, (1u << 30) + hz * s);
		assert_in_range(ns, s * 1000000000u - (s != 0) * 200, s * 1000000000u);
	}
	clock_fini(&c);
}

static void ends_at_the_largest_time(void **state)
{
	struct clock c = {0};
	uint64_t end = (1ull << 62) + 100;

	clock_add(&c, 100, 7);
	clock_finish(&c, 0, 500000000); /* 2 ns a tick */
	for (int again = 0; again < 2; again++) { /* asked in order, and after a jump */
		assert_int_equal(clock_ns(&c, end - 6), INT64_MAX - 4);
		assert_int_equal(clock_ns(&c, end - 5), INT64_MAX - 2);
		assert_int_equal(clock_ns(&c, end - 4), INT64_MAX);
		assert_int_equal(clock_ns(&c, end - 3), INT64_MAX);
		assert_int_equal(clock_ns(&c, UINT64_MAX), INT64_MAX);
		assert_int_equal(clock_ns(&c, 100), 7);
		assert_int_equal(clock_ns(&c, 99), 5);
	}
	clock_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(interpolates),
	    cmocka_unit_test(nominal_rate_for_short_traces),
	    cmocka_unit_test(one_pair_and_none),
	    cmocka_unit_test(never_backwards),
	    cmocka_unit_test(long_traces_stay_exact),
	    cmocka_unit_test(ends_at_the_largest_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
