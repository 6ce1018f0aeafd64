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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_doubling),
	    cmocka_unit_test(test_live_between),
	    cmocka_unit_test(test_absurd_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
