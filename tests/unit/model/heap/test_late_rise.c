/* One late rise after a long steady state; and its look-alikes. */
#include "model/unit.h"

#include "model/heap/late_rise.h"

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
	    cmocka_unit_test(test_burst),
	    cmocka_unit_test(test_at_work),
	    cmocka_unit_test(test_growth_all_along),
	    cmocka_unit_test(test_start_up_then_growth),
	    cmocka_unit_test(test_flat),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
