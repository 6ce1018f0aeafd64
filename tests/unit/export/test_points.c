/* Curves stay small, and keep each bucket's least, most and last value at their times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export/points.h"

struct seen {
	uint64_t count, last_ns, least, most, last;
};

static int see(void *arg, uint64_t time_ns, uint64_t value)
{
	struct seen *s = arg;

	assert_true(time_ns >= s->last_ns);
	s->last_ns = time_ns;
	s->least = !s->count || value < s->least ? value : s->least;
	s->most = value > s->most ? value : s->most;
	s->last = value;
	s->count++;
	return 0;
}

static void few_points_stay(void **state)
{
	struct points c = {0};
	struct seen s = {0};

	assert_int_equal(points_add(&c, 5, 10), 0);
	assert_int_equal(points_add(&c, 1000000000, 30), 0);
	assert_int_equal(points_add(&c, 2000000000, 30), 0); /* unchanged: no point */
	assert_int_equal(points_add(&c, 3000000000, 0), 0);
	assert_int_equal(points_each(&c, see, &s), 0);
	assert_int_equal(s.count, 3);
	assert_int_equal(s.last_ns, 3000000000);
	assert_int_equal(s.last, 0);
	points_fini(&c);
	(void)state;
}

static void extremes_stay(void **state)
{
	struct points c = {0};
	struct seen s = {0};

	for (uint64_t i = 0; i < 1000000; i++)
		assert_int_equal(points_add(&c, i * 1000000,
				     i == 333333   ? 1u << 30
				     : i == 777777 ? 1
						   : 1000 + i % 7),
		    0);
	assert_int_equal(points_each(&c, see, &s), 0);
	assert_in_range(s.count, POINTS_BUCKETS / 2, 3 * POINTS_BUCKETS);
	assert_int_equal(s.most, 1u << 30);
	assert_int_equal(s.least, 1);
	assert_int_equal(s.last, 1000 + 999999 % 7);
	points_fini(&c);
	(void)state;
}

static int stop(void *arg, uint64_t time_ns, uint64_t value)
{
	(void)arg, (void)time_ns, (void)value;
	return 7;
}

static void stops_when_told(void **state)
{
	struct points c = {0};

	assert_int_equal(points_each(&c, stop, NULL), 0);
	assert_int_equal(points_add(&c, UINT64_MAX, 1), 0);
	assert_int_equal(points_each(&c, stop, NULL), 7);
	points_fini(&c);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(few_points_stay),
	    cmocka_unit_test(extremes_stay),
	    cmocka_unit_test(stops_when_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
