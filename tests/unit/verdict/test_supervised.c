/* What the supervisor saw: of this process, and of the cgroup that all share. */
#include "model/unit.h"

#include "verdict/supervised.h"

struct tape {
	struct event events[16];
	struct event_level levels[16][4];
	size_t count, at;
};

static int next(void *self, struct event *out, struct err *err)
{
	struct tape *t = self;

	(void)err;
	if (t->at == t->count)
		return 0;
	*out = t->events[t->at++];
	return 1;
}

static int rewind_tape(void *self, struct err *err)
{
	(void)err;
	((struct tape *)self)->at = 0;
	return 0;
}

static void sample(
    struct tape *t, uint64_t ns, uint32_t pid, uint32_t key, uint64_t value, uint64_t rss)
{
	struct event *e = &t->events[t->count];
	struct event_level *l = t->levels[t->count++];

	*e = (struct event){.kind = EV_LEVEL, .time_ns = ns, .levels = l, .level_count = 2};
	e->u.child.pid = pid;
	l[0] = (struct event_level){key, value};
	l[1] = (struct event_level){TRACE_LEVEL_RSS, rss};
}

static void test_read(void **state)
{
	static struct tape t;
	static struct supervised s;
	struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
	struct err err;
	uint64_t value;

	sample(&t, 1000, 5, TRACE_LEVEL_CG_OOM_KILL, 3, 100);
	sample(&t, 2000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
	sample(&t, 3000, 5, TRACE_LEVEL_RSS_ANON, 300, 400);
	sample(&t, 4000, 6, TRACE_LEVEL_RSS_ANON, 7777, 8888); /* another process */
	sample(&t, 5000, 6, TRACE_LEVEL_CG_OOM_KILL, 4, 8888);
	t.events[t.count] = (struct event){.kind = EV_CHILD_END, .time_ns = 6000};
	t.events[t.count].u.child.pid = 5;
	t.events[t.count].u.child.how = TRACE_END_EXIT;
	t.events[t.count++].u.child.code = 9;
	assert_int_equal(supervised_read(&feed, 5, -1500, &s, &err), 0);
	assert_true(s.ended);
	assert_int_equal(s.code, 9);
	assert_int_equal(s.ended_ns, 4500);
	assert_true(levels_get(&s.last, TRACE_LEVEL_RSS_ANON, &value));
	assert_int_equal(value, 300);
	assert_int_equal(s.last.time_ns[TRACE_LEVEL_RSS_ANON], 1500);
	levels_get(&s.highest, TRACE_LEVEL_RSS_ANON, &value);
	assert_int_equal(value, 800);
	levels_get(&s.first, TRACE_LEVEL_CG_OOM_KILL, &value);
	assert_int_equal(value, 3);
	levels_get(&s.last, TRACE_LEVEL_CG_OOM_KILL, &value);
	assert_int_equal(value, 4);
	/* Before its start: not before zero. */
	assert_int_equal(s.first.time_ns[TRACE_LEVEL_CG_OOM_KILL], 0);
	(void)state;
}

/* While a killed process dies its memory leaves the cgroup: what was before is kept, counters are
 * not. Of one that lives on, or ends by itself, the newest counts. */
static void test_fallen(void **state)
{
	enum { KILLED, EXITED, LIVED_ON };

	for (int how = KILLED; how <= LIVED_ON; how++) {
		static struct tape t;
		static struct supervised s;
		struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
		struct err err;
		uint64_t value;

		memset(&t, 0, sizeof(t));
		sample(&t, 1000000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
		sample(&t, 1001000000, 0, TRACE_LEVEL_CG_CURRENT, 1000, 0);
		sample(&t, 1300000000, 0, TRACE_LEVEL_CG_CURRENT, 500, 0);
		sample(&t, 1301000000, 0, TRACE_LEVEL_CG_OOM_KILL, 1, 0);
		if (how == LIVED_ON)
			sample(&t, 1400000000, 5, TRACE_LEVEL_RSS_ANON, 780, 880);
		t.events[t.count] = (struct event){.kind = EV_CHILD_END, .time_ns = 2000000000};
		t.events[t.count].u.child.pid = 5;
		t.events[t.count++].u.child.how = how == EXITED ? TRACE_END_EXIT : TRACE_END_SIGNAL;
		assert_int_equal(supervised_read(&feed, 5, 0, &s, &err), 0);
		assert_true(levels_get(&s.last, TRACE_LEVEL_CG_CURRENT, &value));
		assert_int_equal(value, how == KILLED ? 1000 : 500);
		assert_int_equal(s.last.time_ns[TRACE_LEVEL_CG_CURRENT],
		    how == KILLED ? 1001000000 : 1300000000);
		assert_true(levels_get(&s.last, TRACE_LEVEL_CG_OOM_KILL, &value));
		assert_int_equal(value, 1);
	}
	(void)state;
}

/* The same of what the process itself had: given back while it died, or before it was killed. */
static void test_dying(void **state)
{
	static const struct {
		uint64_t later, rss, expected;
	} of[] = {{20000000, 100, 900}, {20000000, 600, 600}, {5000000000, 300, 300}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		static struct tape t;
		static struct supervised s;
		struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
		struct err err;
		uint64_t value;

		memset(&t, 0, sizeof(t));
		sample(&t, 1000000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
		sample(&t, 1025000000, 5, TRACE_LEVEL_RSS_ANON, 400, 500);
		sample(&t, 1025000000 + of[i].later, 5, TRACE_LEVEL_RSS_ANON, of[i].rss - 100,
		    of[i].rss);
		t.events[t.count] =
		    (struct event){.kind = EV_CHILD_END, .time_ns = 1050000000 + of[i].later};
		t.events[t.count].u.child.pid = 5;
		t.events[t.count++].u.child.how = TRACE_END_SIGNAL;
		if (i == 2)
			t.events[t.count - 1].time_ns += 5000000000;
		assert_int_equal(supervised_read(&feed, 5, 0, &s, &err), 0);
		assert_true(levels_get(&s.last, TRACE_LEVEL_RSS, &value));
		assert_int_equal(value, of[i].expected);
		assert_true(levels_get(&s.last, TRACE_LEVEL_RSS_ANON, &value));
		assert_int_equal(value, of[i].expected - 100);
	}
	(void)state;
}

/* Looked at within the same round, while the process was being torn down: what is left of it is
 * nobody else's. */
static void test_torn_down(void **state)
{
	for (int killed = 0; killed < 2; killed++) {
		static struct tape t;
		static struct supervised s;
		struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
		struct err err;
		uint64_t value;

		memset(&t, 0, sizeof(t));
		sample(&t, 1000000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
		sample(&t, 1001000000, 0, TRACE_LEVEL_CG_ANON, 820, 0);
		sample(&t, 1100000000, 5, TRACE_LEVEL_RSS_ANON, 900, 1000);
		sample(&t, 1101000000, 0, TRACE_LEVEL_CG_ANON, 600, 0);
		t.events[t.count] = (struct event){.kind = EV_CHILD_END, .time_ns = 1200000000};
		t.events[t.count].u.child.pid = 5;
		t.events[t.count++].u.child.how = killed ? TRACE_END_SIGNAL : TRACE_END_EXIT;
		assert_int_equal(supervised_read(&feed, 5, 0, &s, &err), 0);
		assert_true(levels_get(&s.last, TRACE_LEVEL_CG_ANON, &value));
		assert_int_equal(value, killed ? 820 : 600);
	}
	(void)state;
}

/* Somebody of the group was killed since the look before: what it has now is not what filled it,
 * however little that differs from what one process had. */
static void test_killed(void **state)
{
	static struct tape t;
	static struct supervised s;
	struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
	struct err err;
	uint64_t value;

	sample(&t, 1000000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
	sample(&t, 1001000000, 0, TRACE_LEVEL_CG_ANON, 920, 0);
	sample(&t, 1002000000, 0, TRACE_LEVEL_CG_OOM_KILL, 2, 0);
	sample(&t, 1100000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
	sample(&t, 1101000000, 0, TRACE_LEVEL_CG_ANON, 790, 0);
	t.levels[4][1] = (struct event_level){TRACE_LEVEL_CG_OOM_KILL, 3};
	t.events[t.count] = (struct event){.kind = EV_CHILD_END, .time_ns = 1200000000};
	t.events[t.count].u.child.pid = 5;
	t.events[t.count++].u.child.how = TRACE_END_SIGNAL;
	assert_int_equal(supervised_read(&feed, 5, 0, &s, &err), 0);
	assert_true(levels_get(&s.last, TRACE_LEVEL_CG_ANON, &value));
	assert_int_equal(value, 920);
	assert_true(levels_get(&s.last, TRACE_LEVEL_CG_OOM_KILL, &value));
	assert_int_equal(value, 3);
	(void)state;
}

/* The most that was resident: newer than the samples only where it rose after them. */
static void test_peak(void **state)
{
	static struct supervised s;
	struct feed feed = {.next = next, .rewind = rewind_tape};
	struct err err;
	uint64_t most = 0, value;

	for (int rose = 0; rose < 2; rose++) {
		static struct tape t;

		memset(&t, 0, sizeof(t));
		feed.self = &t;
		sample(&t, 1000000, 5, TRACE_LEVEL_RSS_PEAK, 500, 500);
		sample(&t, 2000000, 5, TRACE_LEVEL_RSS_PEAK, 700, 300);
		sample(&t, 9000000, 5, TRACE_LEVEL_RSS_PEAK, rose ? 900 : 700, 0);
		t.events[2].level_count = 1; /* at the end nothing is resident any more */
		t.events[t.count] = (struct event){.kind = EV_CHILD_END, .time_ns = 8000000};
		t.events[t.count].u.child.pid = 4;
		t.events[t.count++].u.child.flags = rose ? 1 : 0;
		assert_int_equal(supervised_read(&feed, 5, 0, &s, &err), 0);
		assert_false(s.ended);
		assert_int_equal(s.finished, rose);
		assert_true(levels_get(&s.last, TRACE_LEVEL_RSS_PEAK, &value));
		assert_int_equal(value, rose ? 900 : 700);
		assert_int_equal(
		    s.last.time_ns[TRACE_LEVEL_RSS_PEAK] > s.last.time_ns[TRACE_LEVEL_RSS], rose);
		for (uint32_t i = 0; i < s.resident.used; i++)
			if (s.resident.periods[i].rss > most)
				most = s.resident.periods[i].rss;
		assert_int_equal(most, rose ? 900 : 700);
	}
	for (int high = 0; high < 2; high++) {
		static struct tape t;

		memset(&t, 0, sizeof(t));
		feed.self = &t;
		sample(&t, 2000000, 5, TRACE_LEVEL_RSS_PEAK, 7000, high ? 6990 : 5000);
		sample(&t, 9000000, 5, TRACE_LEVEL_RSS_PEAK, 6950, 0);
		t.events[1].level_count = 1;
		assert_int_equal(supervised_read(&feed, 5, 0, &s, &err), 0);
		assert_true(levels_get(&s.last, TRACE_LEVEL_RSS_PEAK, &value));
		assert_int_equal(value, 7000);
		/* Nothing came after the sample of the peak. */
		assert_int_equal(
		    s.last.time_ns[TRACE_LEVEL_RSS_PEAK] > s.last.time_ns[TRACE_LEVEL_RSS], high);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_read),
	    cmocka_unit_test(test_fallen), cmocka_unit_test(test_dying),
	    cmocka_unit_test(test_torn_down), cmocka_unit_test(test_killed),
	    cmocka_unit_test(test_peak)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
