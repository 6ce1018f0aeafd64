/* The power of the length that sizes follow, and their value at another length. */
#include "model/unit.h"

#include <math.h>
#include <stdbool.h>

#include "model/callsite/scaling.h"

static struct scaling_fit fit_of(double a, double b, double c, double noise, int n)
{
	struct scaling_pairs p = {0};
	struct scaling_fit f;

	for (int i = 0; i < n; i++) {
		double length = 100 + 371 * (i * 7 % n);

		scaling_add(&p, length,
		    (a + b * length + c * length * length) * (1 + (i % 2 ? noise : -noise)));
	}
	scaling_fit(&p, &f);
	return f;
}

static bool near(double a, double b, double by)
{
	return fabs(a - b) <= by * fabs(b);
}

static void test_orders(void **state)
{
	struct scaling_fit f = fit_of(5000, 0, 0, 0.005, 9);

	assert_int_equal(f.kind, SCALING_CONSTANT);
	assert_true(scaling_ratio(&f, 1, 1000) == 1);
	f = fit_of(0, 4096, 0, 0, 9);
	assert_int_equal(f.kind, SCALING_LINEAR);
	assert_true(near(scaling_ratio(&f, 500, 2000), 0.25, 1e-6));
	assert_true(near(scaling_length(&f, 4096 * 77), 77, 1e-6));
	/* A fixed part does not shrink with it. */
	f = fit_of(1e6, 4096, 0, 0.003, 9);
	assert_int_equal(f.kind, SCALING_LINEAR);
	assert_true(near(scaling_at(&f, 1000), 1e6 + 4096e3, 0.02));
	f = fit_of(0, 0, 64, 0, 9);
	assert_int_equal(f.kind, SCALING_SQUARE);
	assert_true(near(scaling_ratio(&f, 500, 2000), 1. / 16, 1e-4));
	assert_true(near(scaling_length(&f, 64. * 300 * 300), 300, 1e-3));
	f = fit_of(5000, 128, 64, 0.01, 20);
	assert_int_equal(f.kind, SCALING_SQUARE);
	assert_true(near(scaling_at(&f, 1000), 5000 + 128e3 + 64e6, 0.05));
	/* A longer length has no answer. */
	assert_true(scaling_ratio(&f, 3000, 2000) == 1);
	(void)state;
}

static void test_few(void **state)
{
	struct scaling_pairs p = {0};
	struct scaling_fit f;

	scaling_fit(&p, &f);
	assert_int_equal(f.kind, SCALING_UNKNOWN);
	scaling_add(&p, 100, 1e6);
	scaling_add(&p, 101, 1.02e6);
	scaling_fit(&p, &f);
	assert_int_equal(f.kind, SCALING_UNKNOWN);
	assert_true(scaling_ratio(&f, 1, 100) == 1);
	scaling_add(&p, 200, 4e6);
	scaling_fit(&p, &f);
	assert_int_equal(f.kind, SCALING_SQUARE);
	assert_true(near(scaling_ratio(&f, 50, 100), 0.25, 0.01));

	p = (struct scaling_pairs){0};
	scaling_add(&p, 100, 1e6);
	scaling_add(&p, 200, 2e6);
	scaling_fit(&p, &f);
	assert_int_equal(f.kind, SCALING_LINEAR);
	(void)state;
}

static void test_none(void **state)
{
	struct scaling_pairs p = {0};
	struct scaling_fit f;

	for (int i = 1; i <= 16; i++)
		scaling_add(&p, 100 * i, i * 5 % 16 * 1000 + 1000);
	scaling_fit(&p, &f);
	assert_int_equal(f.kind, SCALING_UNKNOWN);
	/* Smaller the longer: no growth. */
	p = (struct scaling_pairs){0};
	for (int i = 1; i <= 16; i++)
		scaling_add(&p, 100 * i, 1e6 / i);
	scaling_fit(&p, &f);
	assert_int_equal(f.kind, SCALING_UNKNOWN);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_orders),
	    cmocka_unit_test(test_few),
	    cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
