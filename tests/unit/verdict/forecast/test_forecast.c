/* Forecasts of an hour in 120 periods: what grows is foretold, what varies is not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "verdict/forecast/forecast.h"

#define PERIODS 120u
#define PERIOD_S 30u
#define MIB 1048576.0

static double noise(unsigned *random)
{
	*random = *random * 1103515245 + 12345;
	return (double)(*random >> 16 & 0x7fff) / 0x7fff;
}

enum shape { FLATTENS, SAWTOOTH, SPIKES, STAIRS, SAWTOOTH_LEAK, NOISY_LEAK, STOPS, BEGINS, SHAPES };

/* Bytes at that second, in MiB. */
static double at(enum shape shape, unsigned second, unsigned *random)
{
	switch (shape) {
	case FLATTENS:
		return 1000 * (1 - exp(-(double)second / 60));
	case SAWTOOTH:
		return 500 + second % 600;
	case SPIKES:
		return second % 300 < 20 ? 900 : 500;
	case STAIRS:
		return 500 + second / 1500 * 100;
	case SAWTOOTH_LEAK:
		return 500 + second % 120 + 0.1 * second;
	case NOISY_LEAK:
		return 500 + 0.2 * second + 60 * noise(random);
	case STOPS:
		return 500 + 0.2 * (second < 2400 ? second : 2400);
	case BEGINS:
		return 500 + (second < 3500 ? 0 : 20 * (second - 3500));
	default:
		return 0;
	}
}

static void series(enum shape shape, unsigned count, struct forecast_period *out)
{
	unsigned random = 1;

	for (unsigned i = 0; i < count; i++) {
		out[i] = (struct forecast_period){
		    .time_ns = (uint64_t)i * PERIOD_S * 1000000000u, .least = UINT64_MAX};
		for (unsigned s = 0; s < PERIOD_S; s++) {
			uint64_t bytes = (uint64_t)(MIB * at(shape, i * PERIOD_S + s, &random));

			out[i].least = bytes < out[i].least ? bytes : out[i].least;
			out[i].most = bytes > out[i].most ? bytes : out[i].most;
		}
	}
}

static void test_shapes(void **state)
{
	static const double rates[SHAPES] = {[SAWTOOTH_LEAK] = 0.1, [NOISY_LEAK] = 0.2};

	for (enum shape shape = 0; shape < SHAPES; shape++) {
		struct forecast_period periods[PERIODS];
		struct forecast f;

		series(shape, PERIODS, periods);
		forecast_make(periods, PERIODS, (uint64_t)(1000 * MIB), &f);
		assert_int_equal(f.state, rates[shape] > 0 ? FORECAST_GROWS : FORECAST_STEADY);
		if (f.state != FORECAST_GROWS) {
			assert_true(isinf(f.seconds) && isinf(f.soonest) && f.rate == 0);
			continue;
		}
		assert_true(f.rate > 0.8 * MIB * rates[shape] && f.rate < 1.2 * MIB * rates[shape]);
		assert_true(f.seconds > 1000 / rates[shape] / 1.2 &&
			    f.seconds < 1000 / rates[shape] * 1.25);
		assert_true(f.soonest <= f.seconds && f.seconds <= f.latest);
	}
	(void)state;
}

/* At no time during the hour is a shape that does not grow told to. */
static void test_no_false_alarm(void **state)
{
	static const enum shape healthy[] = {FLATTENS, SAWTOOTH, SPIKES};

	for (size_t n = 0; n < sizeof(healthy) / sizeof(*healthy); n++) {
		struct forecast_period periods[PERIODS];

		series(healthy[n], PERIODS, periods);
		for (unsigned count = 48; count <= PERIODS; count++) {
			struct forecast f;

			forecast_make(periods, count, (uint64_t)(1000 * MIB), &f);
			assert_true(
			    f.state == FORECAST_STEADY || f.seconds > 4.0 * count * PERIOD_S);
		}
	}
	(void)state;
}

/* What places keep, in MiB, over an hour that begins at second 60; 60 MiB/s are acquired. */
static void kept(double (*bytes)(double second), double (*work)(double second),
    struct forecast_point out[FORECAST_POINTS])
{
	for (unsigned i = 0; i < FORECAST_POINTS; i++) {
		double second = 60 + 3600.0 * i / (FORECAST_POINTS - 1);

		out[i] = (struct forecast_point){second, MIB * work(second), MIB * bytes(second)};
	}
}

static double even(double second)
{
	return second;
}
static double flattens(double second)
{
	return 1000 * (1 - exp(-second / 600));
}
static double faster(double second)
{
	return second * second / 1000;
}
static double night(double second) /* until half past; then hardly anything happens */
{
	return second < 2400 ? second : 2400 + (second - 2400) / 10;
}
static double falls(double second)
{
	return 4000 - second;
}

static void test_points(void **state)
{
	struct forecast_point points[FORECAST_POINTS];
	struct forecast f;

	kept(even, even, points);
	forecast_of_points(points, 0, (uint64_t)(1800 * MIB), &f);
	assert_int_equal(f.state, FORECAST_GROWS);
	assert_true(fabs(f.rate - MIB) < 1 && fabs(f.seconds - 1800) < 1);
	assert_true(f.soonest < 1300 && f.latest > 2600 && isfinite(f.latest));
	assert_true(f.since == 3600 && f.alarm && fabs(f.work / MIB - 1800) < 1);
	/* It would take longer than it has run so far. */
	forecast_of_points(points, 0, (uint64_t)(3700 * MIB), &f);
	assert_true(f.state == FORECAST_GROWS && !f.alarm);

	kept(flattens, even, points);
	forecast_of_points(points, 0, (uint64_t)(100 * MIB), &f);
	assert_true(f.state == FORECAST_STEADY && isinf(f.seconds) && !f.alarm);
	kept(falls, even, points);
	forecast_of_points(points, 0, (uint64_t)(100 * MIB), &f);
	assert_int_equal(f.state, FORECAST_STEADY);

	/* The recent rate counts. */
	kept(faster, even, points);
	forecast_of_points(points, 0, (uint64_t)(1800 * MIB), &f);
	assert_true(f.state == FORECAST_GROWS && f.rate > 5 * MIB && f.rate < 7.4 * MIB);
	(void)state;
}

static void test_pause(void **state)
{
	struct forecast_point points[FORECAST_POINTS];
	struct forecast f;

	/* The work slows down, too: it goes on in the morning. */
	kept(night, night, points);
	forecast_of_points(points, 0, (uint64_t)(1000 * MIB), &f);
	assert_int_equal(f.state, FORECAST_GROWS);
	/* The work goes on, and less of it is kept. */
	kept(night, even, points);
	forecast_of_points(points, 0, (uint64_t)(1000 * MIB), &f);
	assert_int_equal(f.state, FORECAST_STEADY);
	(void)state;
}

/* A queue that fills since a minute tells nothing of the next hour. */
static void test_just_begun(void **state)
{
	struct forecast_point points[FORECAST_POINTS];
	struct forecast f;

	for (unsigned i = 0; i < FORECAST_POINTS; i++)
		points[i] = (struct forecast_point){7200 + 2.0 * i, MIB * i, MIB * i};
	forecast_of_points(points, 0, (uint64_t)(100 * MIB), &f);
	assert_true(f.state == FORECAST_GROWS && f.since == 64 && !f.alarm);
	forecast_of_points(points, 0, (uint64_t)(50 * MIB), &f);
	assert_true(f.alarm);
	(void)state;
}

static void test_too_few(void **state)
{
	struct forecast_period periods[PERIODS];
	struct forecast f;

	series(NOISY_LEAK, PERIODS, periods);
	forecast_make(periods, 47, 1, &f);
	assert_int_equal(f.state, FORECAST_UNKNOWN);
	assert_true(isinf(f.seconds));
	forecast_make(periods, 48, 0, &f);
	assert_int_equal(f.state, FORECAST_GROWS);
	assert_true(f.seconds == 0); /* there is no room left */
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
	    cmocka_unit_test(test_points), cmocka_unit_test(test_pause),
	    cmocka_unit_test(test_just_begun), cmocka_unit_test(test_no_false_alarm),
	    cmocka_unit_test(test_too_few)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
