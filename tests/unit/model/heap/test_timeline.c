/* Periods double, and keep their sums. */
#include "model/unit.h"

#include "model/heap/timeline.h"

static void test_doubling(void **state)
{
	static struct timeline t;
	uint64_t acquired = 0, events = 0, top = 0;

	timeline_init(&t);
	for (uint64_t ns = 0; ns < 100000000000ull; ns += 7777777) {
		struct period *p = timeline_at(&t, ns, ns / 2);

		p->acquired += 10;
		p->events++;
		p->last = ns / 2 + 1;
		if (p->last > p->most)
			p->most = p->last;
	}
	assert_true(t.used <= TIMELINE_PERIODS && t.used > TIMELINE_PERIODS / 2 - 1);
	for (uint32_t i = 0; i < t.used; i++) {
		acquired += t.periods[i].acquired;
		events += t.periods[i].events;
		assert_true(t.periods[i].most >= top);
		top = t.periods[i].most;
	}
	assert_int_equal(acquired, events * 10);
	assert_in_range(timeline_acquired(&t, 0, UINT64_MAX), events * 10 - 10, events * 10);
	assert_in_range(timeline_acquired(&t, 25000000000, 75000000000), events * 10 / 2 - 100,
	    events * 10 / 2 + 100);
	assert_int_equal(timeline_acquired(&t, 7, 7), 0);
	assert_int_equal(timeline_active(&t, 25000000000, 75000000000), 50000000000);
	/* Events after the requested moment. */
	assert_int_equal(timeline_active(&t, 50000000001, 50000000000), 0);
	assert_int_equal(events, 100000000000ull / 7777777 + 1);
	(void)state;
}

static void test_live_between(void **state)
{
	static struct timeline t;
	uint64_t live = 0;

	timeline_init(&t);
	for (uint64_t ns = 0; ns < 1000000000; ns += 1000000) {
		struct period *p = timeline_at(&t, ns, live);
		live = ns;
		p->last = live;
		p->last_ns = ns;
	}
	for (uint64_t ns = 50000000; ns < 950000000; ns += 33333333) {
		uint64_t said = timeline_live(&t, ns), off = said > ns ? said - ns : ns - said;
		assert_true(off <= 1100000); /* the distance of two events */
	}
	assert_int_equal(timeline_live(&t, UINT64_MAX), live);
	/* Another sum that is interpolated alike differs by nothing. */
	for (uint64_t ns = 50000000; ns < 950000000; ns += 33333333) {
		uint64_t from, until;
		double part = timeline_between(&t, ns, &from, &until);

		assert_true(from <= ns && ns <= until);
		assert_float_equal((double)timeline_live(&t, ns),
		    (1 - part) * (double)from + part * (double)until, 1100000);
	}
	(void)state;
}

static void test_absurd_time(void **state)
{
	static struct timeline t;

	timeline_init(&t);
	timeline_at(&t, UINT64_MAX, 5);
	assert_true(t.used <= TIMELINE_PERIODS);
	timeline_at(&t, 3, 5); /* time going back stays in the last period */
	(void)state;
}

/* One late rise after a long steady state; and its look-alikes. */
static struct timeline t;
static uint64_t work; /* bytes acquired at each put() */

static void put(uint64_t ms, uint64_t live)
{
	struct period *p = timeline_at(&t, ms * 1000000, live);

	p->events++;
	p->acquired += work;
	p->last = live;
	if (live > p->most)
		p->most = live;
	if (live < p->least)
		p->least = live;
}

static void test_burst(void **state)
{
	struct late_rise b;

	timeline_init(&t);
	for (uint64_t ms = 0; ms < 1000; ms++)
		put(ms, 10 * MiB + ms % 7 * 100 * KiB);
	for (uint64_t ms = 1000; ms < 1200; ms++)
		put(ms, 10 * MiB + (ms - 1000) * 5 * MiB);
	assert_true(late_rise_find(&t, 0, 1200000000, &b));
	assert_in_range(b.start_ns, 900000000, 1100000000);
	assert_in_range(b.peak_trend_bytes, 900 * MiB, 1000 * MiB);
	assert_false(b.worked); /* it lay there */
	(void)state;
}

static void test_at_work(void **state)
{
	struct late_rise b;

	work = 100 * KiB;
	timeline_init(&t);
	for (uint64_t ms = 0; ms < 1000; ms++)
		put(ms, 10 * MiB);
	for (uint64_t ms = 1000; ms < 1200; ms++)
		put(ms, 10 * MiB + (ms - 1000) * 5 * MiB);
	work = 0;
	assert_true(late_rise_find(&t, 0, 1200000000, &b));
	assert_true(b.worked);
	(void)state;
}

static void test_growth_all_along(void **state)
{
	struct late_rise b;

	timeline_init(&t);
	for (uint64_t ms = 0; ms < 1200; ms++)
		put(ms, 10 * MiB + ms * MiB);
	assert_false(late_rise_find(&t, 0, 1200000000, &b));
	(void)state;
}

static void test_start_up_then_growth(void **state)
{
	struct late_rise b;

	/* A start that climbs is no steady state. */
	timeline_init(&t);
	for (uint64_t ms = 0; ms < 1000; ms++)
		put(ms, ms * 500 * KiB);
	for (uint64_t ms = 1000; ms < 1200; ms++)
		put(ms, 500 * MiB + (ms - 1000) * 5 * MiB);
	assert_false(late_rise_find(&t, 0, 1200000000, &b));
	(void)state;
}

static void test_flat(void **state)
{
	struct late_rise b;

	timeline_init(&t);
	for (uint64_t ms = 0; ms < 1000; ms++)
		put(ms, 100 * MiB);
	assert_false(late_rise_find(&t, 0, 1000000000, &b));
	timeline_init(&t);
	assert_false(late_rise_find(&t, 0, 0, &b));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_doubling),
	    cmocka_unit_test(test_live_between),
	    cmocka_unit_test(test_absurd_time),
	    cmocka_unit_test(test_burst),
	    cmocka_unit_test(test_at_work),
	    cmocka_unit_test(test_growth_all_along),
	    cmocka_unit_test(test_start_up_then_growth),
	    cmocka_unit_test(test_flat),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
