/* Rising, level, falling; by a step or by a factor. */
#include "model/unit.h"

#include <math.h>

#include "model/callsite/trend.h"

static void test_tau(void **state)
{
	double up[] = {1, 2, 3, 4, 5}, same[] = {3, 3, 3, 3}, down[] = {5, 4, 2, 1};
	double noisy[32];
	uint64_t seed = 4242;
	double sum = 0;

	assert_float_equal(trend_tau(up, 5), 1, 1e-9);
	assert_float_equal(trend_tau(same, 4), 0, 1e-9);
	assert_float_equal(trend_tau(down, 4), -1, 1e-9);
	assert_float_equal(trend_tau(up, 1), 0, 1e-9);
	/* Without a trend, rarely beyond 0.3: the model's threshold. */
	for (int run = 0; run < 500; run++) {
		for (int i = 0; i < 32; i++)
			noisy[i] = (double)dice(&seed, 1000000);
		sum += fabs(trend_tau(noisy, 32)) > 0.3;
	}
	assert_true(sum <= 15);
	(void)state;
}

static void test_fit(void **state)
{
	double x[] = {1, 2, 3, 4}, y[] = {3, 5, 7, 9}, flat[] = {1, 1, 1, 1}, slope;

	assert_float_equal(trend_fit(x, y, 4, &slope), 1, 1e-9);
	assert_float_equal(slope, 2, 1e-9);
	assert_float_equal(trend_fit(x, flat, 4, &slope), 0, 1e-9);
	assert_float_equal(trend_fit(flat, y, 4, &slope), 0, 1e-9);
	assert_float_equal(slope, 0, 1e-9);
	(void)state;
}

static void test_median(void **state)
{
	double odd[] = {9, 1, 5}, even[] = {4, 1, 3, 2};

	assert_float_equal(trend_median(odd, 3), 5, 1e-9);
	assert_float_equal(trend_median(even, 4), 2.5, 1e-9);
	assert_float_equal(trend_median(odd, 0), 0, 1e-9);
	(void)state;
}

/* Containers of three languages against prompts of three shapes. */
static void test_geometric(void **state)
{
	double doubling[12], eighth[40], linear[40], noisy[40], slow[40];
	uint64_t seed = 7;

	for (int i = 0; i < 12; i++)
		doubling[i] = pow(2, i);
	for (int i = 0; i < 40; i++) {
		eighth[i] = i ? eighth[i - 1] * 9 / 8 + 6 : 4;
		linear[i] = 1000.0 * (i + 1);
		noisy[i] = 1000.0 * (i + 1) + (double)dice(&seed, 3000);
		slow[i] = 1e6 + 500.0 * i;
	}
	assert_true(trend_geometric(doubling, 12));
	assert_true(trend_geometric(eighth, 40));
	assert_false(trend_geometric(linear, 40));
	assert_false(trend_geometric(noisy, 40));
	assert_false(trend_geometric(slow, 40));
	assert_false(trend_geometric(doubling, 3)); /* too few to say */
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tau),
	    cmocka_unit_test(test_fit),
	    cmocka_unit_test(test_median),
	    cmocka_unit_test(test_geometric),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
