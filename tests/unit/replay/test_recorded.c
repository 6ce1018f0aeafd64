/* What was measured, in the order of time. */
#include "model/unit.h"

#include "model/script.h"
#include "replay/recorded.h"

static void sample(struct script *s, uint64_t resident, uint64_t anonymous, uint64_t size)
{
	struct event *e = script_event(s, EV_LEVEL, TRACE_SPACE_HOST);
	static struct event_level levels[64][3];
	static unsigned used;
	struct event_level *l = levels[used++ % 64];

	l[0] = (struct event_level){TRACE_LEVEL_RSS, resident};
	l[1] = (struct event_level){TRACE_LEVEL_VSIZE, size};
	l[2] = (struct event_level){TRACE_LEVEL_RSS_ANON, anonymous};
	e->levels = l;
	e->level_count = anonymous ? 3 : 2;
}

static void test_merged(void **state)
{
	struct script *own = script_new(), *outside = script_new();
	struct feed feed = script_feed(own), supervisor = script_feed(outside);
	struct recorded r;
	struct err err;

	script_facts(own)->pid = 7;
	script_step(own, 1000);
	sample(own, 10 * MiB, 0, 100 * MiB); /* at 1,000 */
	sample(own, 30 * MiB, 0, 100 * MiB); /* at 2,000 */
	script_step(outside, 1500);
	sample(outside, 20 * MiB, 15 * MiB, 100 * MiB); /* at 1,500 */
	script_event(outside, EV_LEVEL, TRACE_SPACE_HOST)->u.child.pid = 8; /* another one's */
	assert_int_equal(recorded_read(feed, NULL, 0, &r, &err), 0);
	assert_int_equal(r.samples.count, 2);
	/* Nobody said how much of it was of files. */
	assert_int_equal(r.samples.items[0].anonymous, 0);
	recorded_fini(&r);

	outside = (script_free(outside), script_new());
	supervisor = script_feed(outside);
	script_step(outside, 1500);
	sample(outside, 20 * MiB, 15 * MiB, 100 * MiB);
	script_event(outside, EV_NOTICE, TRACE_SPACE_HOST);
	assert_int_equal(recorded_read(feed, &supervisor, 0, &r, &err), 0);
	/* The supervisor's are of whom they name: this one names nobody. */
	assert_int_equal(r.samples.count, 2);
	recorded_fini(&r);
	script_free(own);
	script_free(outside);
	(void)state;
}

static void test_what_is_measured_seldom_holds_on(void **state)
{
	struct script *s = script_new();
	struct recorded r;
	struct err err;

	sample(s, 10 * MiB, 0, 100 * MiB);
	sample(s, 20 * MiB, 15 * MiB, 100 * MiB);
	sample(s, 30 * MiB, 0, 100 * MiB);
	assert_int_equal(recorded_read(script_feed(s), NULL, 0, &r, &err), 0);
	assert_int_equal(r.samples.count, 3);
	assert_int_equal(r.samples.items[0].anonymous, 5 * MiB);
	assert_int_equal(r.samples.items[1].anonymous, 15 * MiB);
	assert_int_equal(r.samples.items[2].anonymous, 25 * MiB);
	recorded_fini(&r);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_merged),
	    cmocka_unit_test(test_what_is_measured_seldom_holds_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
