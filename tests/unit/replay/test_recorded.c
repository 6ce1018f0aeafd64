/* Recorded levels, in the order of time. */
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
	/* The file part is unknown. */
	assert_int_equal(r.samples.items[0].anonymous, 0);
	recorded_fini(&r);

	outside = (script_free(outside), script_new());
	supervisor = script_feed(outside);
	script_step(outside, 1500);
	sample(outside, 20 * MiB, 15 * MiB, 100 * MiB);
	script_event(outside, EV_NOTICE, TRACE_SPACE_HOST);
	assert_int_equal(recorded_read(feed, &supervisor, 0, &r, &err), 0);
	/* The supervisor's levels name a process: this one names none. */
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

	sample(s, 20 * MiB, 15 * MiB, 100 * MiB);
	sample(s, 30 * MiB, 0, 100 * MiB);
	sample(s, 40 * MiB, 35 * MiB, 100 * MiB);
	sample(s, 40 * MiB, 0, 100 * MiB);
	sample(s, 40 * MiB, 29 * MiB, 100 * MiB);
	sample(s, 50 * MiB, 0, 100 * MiB);
	assert_int_equal(recorded_read(script_feed(s), NULL, 0, &r, &err), 0);
	assert_int_equal(r.samples.count, 6);
	assert_int_equal(r.samples.items[0].anonymous, 15 * MiB);
	assert_int_equal(r.samples.items[1].anonymous, 25 * MiB);
	assert_int_equal(r.samples.items[1].of_files, 5 * MiB);
	assert_false(r.samples.items[1].unsure);
	/* Files came in between, at unknown times: evenly. */
	assert_int_equal(r.samples.items[3].anonymous, 32 * MiB);
	assert_true(r.samples.items[3].unsure);
	assert_int_equal(r.samples.items[5].anonymous, 39 * MiB);
	assert_false(r.samples.items[5].unsure);
	recorded_fini(&r);
	script_free(s);
	(void)state;
}

/* Levels by key and value, of the process, or of the machine if no process is named. */
static void levels(struct script *s, uint32_t pid, const struct event_level *l, uint32_t count)
{
	struct event *e = script_event(s, EV_LEVEL, TRACE_SPACE_HOST);

	e->levels = l;
	e->level_count = count;
	e->u.child.pid = pid;
}

/* The memory of others in its group; and the group's files that can be dropped. */
static void test_others(void **state)
{
	static const struct event_level own[] = {{TRACE_LEVEL_RSS, 30 * MiB},
	    {TRACE_LEVEL_RSS_ANON, 20 * MiB}, {TRACE_LEVEL_CG_CURRENT, 100 * MiB}};
	static const struct event_level group[] = {{TRACE_LEVEL_CG_CURRENT, 150 * MiB},
	    {TRACE_LEVEL_CG_FILE, 40 * MiB}, {TRACE_LEVEL_CG_SHMEM, 10 * MiB},
	    {TRACE_LEVEL_SYS_TOTAL, 900 * MiB}, {TRACE_LEVEL_SYS_AVAILABLE, 400 * MiB}};
	struct script *s = script_new(), *outside = script_new();
	struct feed supervisor = script_feed(outside);
	struct recorded r;
	struct err err;

	script_facts(s)->pid = 7;
	script_step(s, 1000);
	levels(s, 0, own, 3);
	script_step(outside, 1500);
	levels(outside, 0, group, 5);
	assert_int_equal(recorded_read(script_feed(s), &supervisor, 0, &r, &err), 0);
	assert_int_equal(r.samples.count, 2);
	assert_int_equal(r.samples.items[0].group, (100 - 30 - 20) * MiB);
	assert_int_equal(r.samples.items[1].group, (150 - 30 - 20) * MiB);
	assert_int_equal(r.samples.items[1].machine, (500 - 20) * MiB);
	assert_int_equal(r.samples.items[1].resident, 0);
	recorded_fini(&r);
	script_free(s);
	script_free(outside);
	(void)state;
}

/* Limits are known only if they were read, and hold for the time before. */
static void test_limits(void **state)
{
	static const struct event_level none[] = {{TRACE_LEVEL_VSIZE, 30 * MiB},
	    {TRACE_LEVEL_DATA, MiB}},
					unasked[] = {{TRACE_LEVEL_VSIZE, 30 * MiB}},
					one[] = {{TRACE_LEVEL_VSIZE, 30 * MiB},
					    {TRACE_LEVEL_DATA, MiB},
					    {TRACE_LEVEL_LIMIT_AS, 60 * MiB}};
	struct script *s = script_new();
	struct recorded r;
	struct err err;

	levels(s, 0, none, 2);
	levels(s, 0, unasked, 1);
	levels(s, 0, one, 3);
	assert_int_equal(recorded_read(script_feed(s), NULL, 0, &r, &err), 0);
	assert_int_equal(r.samples.count, 3);
	assert_true(r.samples.items[0].limit_as == UINT64_MAX);
	assert_true(r.samples.items[1].limit_as == UINT64_MAX);
	assert_int_equal(r.samples.items[2].limit_as, 60 * MiB);
	assert_true(r.samples.items[2].limit_data == UINT64_MAX);
	recorded_fini(&r);
	script_free(s);
	(void)state;
}

/* The start's level holds until then; and the curve's first half tells its pace. */
static void test_start_and_pace(void **state)
{
	static const struct event_level none[] = {{TRACE_LEVEL_RSS, 15 * MiB},
	    {TRACE_LEVEL_RSS_ANON, 10 * MiB}},
					grown[] = {{TRACE_LEVEL_RSS, 35 * MiB},
					    {TRACE_LEVEL_RSS_ANON, 30 * MiB}},
					more[] = {{TRACE_LEVEL_RSS, 995 * MiB},
					    {TRACE_LEVEL_RSS_ANON, 990 * MiB},
					    {TRACE_LEVEL_DATA, MiB},
					    {TRACE_LEVEL_LIMIT_AS, 60 * MiB}};
	struct script *s = script_new();
	struct recorded r;
	struct err err;

	script_step(s, 10000000);
	script_info(s, "limit.as", "unlimited");
	script_info(s, "limit.data", "1048576");
	levels(s, 0, none, 2);
	levels(s, 0, grown, 2);
	levels(s, 0, more, 4);
	assert_int_equal(recorded_read(script_feed(s), NULL, 0, &r, &err), 0);
	assert_true(r.samples.items[0].limit_as == UINT64_MAX);
	assert_int_equal(r.samples.items[1].limit_data, MiB);
	assert_int_equal(r.samples.items[2].limit_as, 60 * MiB);
	assert_int_equal(r.half_ns, r.samples.items[1].time_ns);
	assert_true(r.pace > 0.99 * 20 * MiB / 1e7 && r.pace < 1.01 * 20 * MiB / 1e7);
	recorded_fini(&r);
	script_free(s);
	(void)state;
}

/* Stacks that are kept for later threads make no stack larger. */
static void test_stacks(void **state)
{
	static const struct event_level looks[][3] = {
	    {{TRACE_LEVEL_RSS, MiB}, {TRACE_LEVEL_THREADS, 3}, {TRACE_LEVEL_VIRT_THREADS, 8 * MiB}},
	    {{TRACE_LEVEL_RSS, MiB}, {TRACE_LEVEL_THREADS, 5}, {TRACE_LEVEL_VIRT_THREADS, 8 * MiB}},
	    {{TRACE_LEVEL_RSS, MiB}, {TRACE_LEVEL_THREADS, 2},
		{TRACE_LEVEL_VIRT_THREADS, 8 * MiB}}};
	struct script *s = script_new(), *outside = script_new();
	struct feed supervisor = script_feed(outside);
	struct recorded r;
	struct err err;

	script_facts(s)->pid = 7;
	for (int i = 0; i < 3; i++)
		levels(outside, 7, looks[i], 3);
	assert_int_equal(recorded_read(script_feed(s), &supervisor, 0, &r, &err), 0);
	assert_int_equal(r.thread_stack, 2 * MiB);
	recorded_fini(&r);
	script_free(s);
	script_free(outside);
	(void)state;
}

/* The peak of resident memory is new if it rose after the last sample. */
static void test_peak_at_the_end(void **state)
{
	static const struct event_level looks[][2] = {
	    {{TRACE_LEVEL_RSS, 30 * MiB}, {TRACE_LEVEL_RSS_PEAK, 50 * MiB}},
	    {{TRACE_LEVEL_RSS_PEAK, 50 * MiB}}, {{TRACE_LEVEL_RSS_PEAK, 80 * MiB}}};

	for (int end = 1; end < 3; end++) {
		struct script *s = script_new(), *outside = script_new();
		struct feed supervisor = script_feed(outside);
		struct recorded r;
		struct err err;

		script_facts(s)->pid = 7;
		levels(outside, 7, looks[0], 2);
		levels(outside, 7, looks[end], 1);
		assert_int_equal(recorded_read(script_feed(s), &supervisor, 0, &r, &err), 0);
		assert_int_equal(r.samples.count, 1);
		assert_int_equal(r.end_peak, end == 1 ? 0 : 80 * MiB);
		assert_int_equal(r.peak_before, 50 * MiB);
		recorded_fini(&r);
		script_free(s);
		script_free(outside);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_merged),
	    cmocka_unit_test(test_what_is_measured_seldom_holds_on),
	    cmocka_unit_test(test_others),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_start_and_pace),
	    cmocka_unit_test(test_stacks),
	    cmocka_unit_test(test_peak_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
