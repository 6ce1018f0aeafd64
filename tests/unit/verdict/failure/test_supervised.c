/* What the supervisor saw: of this process, and of the cgroup that all share. */
#include "model/unit.h"

#include "verdict/failure/supervised.h"

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

static int read_it(struct feed *feed, int64_t shift_ns, struct supervised *out, struct err *err)
{
	return supervised_read(
	    feed, &(struct supervised_of){.pid = 5, .shift_ns = shift_ns}, out, err);
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

/* A later part of the same sample. */
static void rest_of_look(struct tape *t, uint64_t ns, uint32_t pid, uint32_t key, uint64_t value)
{
	sample(t, ns, pid, key, value, 0);
	t->events[t->count - 1].level_count = 1;
}

/* Process 5 is the one under test. */
static void ended(struct tape *t, uint64_t ns, uint32_t how)
{
	struct event *e = &t->events[t->count++];

	*e = (struct event){.kind = EV_CHILD_END, .time_ns = ns};
	e->u.child.pid = 5;
	e->u.child.how = (uint8_t)how;
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
	assert_int_equal(read_it(&feed, -1500, &s, &err), 0);
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

/* While a killed process dies, its memory leaves the cgroup: the earlier sample stays, counters
 * do not. For a process that lives on or exits by itself, the newest sample counts. */
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
		ended(&t, 2000000000, how == EXITED ? TRACE_END_EXIT : TRACE_END_SIGNAL);
		assert_int_equal(read_it(&feed, 0, &s, &err), 0);
		assert_true(levels_get(&s.last, TRACE_LEVEL_CG_CURRENT, &value));
		assert_int_equal(value, how == KILLED ? 1000 : 500);
		assert_int_equal(s.last.time_ns[TRACE_LEVEL_CG_CURRENT],
		    how == KILLED ? 1001000000 : 1300000000);
		assert_true(levels_get(&s.last, TRACE_LEVEL_CG_OOM_KILL, &value));
		assert_int_equal(value, 1);
	}
	(void)state;
}

/* It belongs to its sample: the one with the most, or that of a dying process. */
static void test_rest_of_look(void **state)
{
	static struct tape t;
	static struct supervised s;
	struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
	struct err err;

	sample(&t, 1000000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
	rest_of_look(&t, 1040000000, 5, TRACE_LEVEL_PSS, 850);
	sample(&t, 1100000000, 5, TRACE_LEVEL_RSS_ANON, 100, 200);
	rest_of_look(&t, 1140000000, 5, TRACE_LEVEL_PSS, 150);
	ended(&t, 1200000000, TRACE_END_SIGNAL);
	assert_int_equal(read_it(&feed, 0, &s, &err), 0);
	assert_int_equal(levels_value(&s.last, TRACE_LEVEL_PSS), 850);
	assert_int_equal(s.last.time_ns[TRACE_LEVEL_RSS_ANON], 1000000000);
	assert_int_equal(s.last.time_ns[TRACE_LEVEL_PSS], 1040000000);
	assert_int_equal(levels_value(&s.highest, TRACE_LEVEL_PSS), 850);
	(void)state;
}

/* The same for the process's own memory: given back while it died, or before the kill. */
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
		ended(&t, 1050000000 + of[i].later, TRACE_END_SIGNAL);
		if (i == 2)
			t.events[t.count - 1].time_ns += 5000000000;
		assert_int_equal(read_it(&feed, 0, &s, &err), 0);
		assert_true(levels_get(&s.last, TRACE_LEVEL_RSS, &value));
		assert_int_equal(value, of[i].expected);
		assert_true(levels_get(&s.last, TRACE_LEVEL_RSS_ANON, &value));
		assert_int_equal(value, of[i].expected - 100);
	}
	(void)state;
}

/* Sampled in the same round, during the process's teardown: its remainder is not another
 * process's. */
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
		ended(&t, 1200000000, killed ? TRACE_END_SIGNAL : TRACE_END_EXIT);
		assert_int_equal(read_it(&feed, 0, &s, &err), 0);
		assert_true(levels_get(&s.last, TRACE_LEVEL_CG_ANON, &value));
		assert_int_equal(value, killed ? 820 : 600);
	}
	(void)state;
}

/* A process of the group was killed since the sample before: what is there now did not fill the
 * group, even if it differs little from one process's memory. */
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
	ended(&t, 1200000000, TRACE_END_SIGNAL);
	assert_int_equal(read_it(&feed, 0, &s, &err), 0);
	assert_true(levels_get(&s.last, TRACE_LEVEL_CG_ANON, &value));
	assert_int_equal(value, 920);
	assert_true(levels_get(&s.last, TRACE_LEVEL_CG_OOM_KILL, &value));
	assert_int_equal(value, 3);
	(void)state;
}

/* The supervisor learns the end of its own children only. For another process: the killer struck
 * and only the group was sampled again; or the process was sampled and lived on. */
static void test_struck(void **state)
{
	for (int lived = 0; lived < 2; lived++) {
		static struct tape t;
		static struct supervised s;
		struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
		struct err err;
		uint64_t value;

		memset(&t, 0, sizeof(t));
		sample(&t, 1000000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
		sample(&t, 1001000000, 0, TRACE_LEVEL_CG_CURRENT, 2000, 0);
		t.levels[1][1] = (struct event_level){TRACE_LEVEL_CG_OOM_KILL, 0};
		sample(&t, 1100000000, 0, TRACE_LEVEL_CG_CURRENT, 1200, 0);
		t.levels[2][1] = (struct event_level){TRACE_LEVEL_CG_OOM_KILL, 1};
		if (lived)
			sample(&t, 1150000000, 5, TRACE_LEVEL_RSS_ANON, 820, 920);
		sample(&t, 9000000000, 0, TRACE_LEVEL_CG_CURRENT, 300, 0);
		t.levels[t.count - 1][1] = (struct event_level){TRACE_LEVEL_CG_OOM_KILL, 1};
		assert_int_equal(read_it(&feed, 0, &s, &err), 0);
		assert_int_equal(s.struck, !lived);
		assert_true(levels_get(&s.last, TRACE_LEVEL_CG_CURRENT, &value));
		assert_int_equal(value, lived ? 300 : 2000);
	}
	(void)state;
}

/* The peak of resident memory is newer than the samples only if it rose after them. */
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
		t.events[2].level_count = 1; /* at the end nothing is resident */
		t.events[t.count] = (struct event){.kind = EV_CHILD_END, .time_ns = 8000000};
		t.events[t.count].u.child.pid = 4;
		t.events[t.count++].u.child.flags = rose ? 1 : 0;
		assert_int_equal(read_it(&feed, 0, &s, &err), 0);
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
		assert_int_equal(read_it(&feed, 0, &s, &err), 0);
		assert_true(levels_get(&s.last, TRACE_LEVEL_RSS_PEAK, &value));
		assert_int_equal(value, 7000);
		/* Nothing came after the sample of the peak. */
		assert_int_equal(
		    s.last.time_ns[TRACE_LEVEL_RSS_PEAK] > s.last.time_ns[TRACE_LEVEL_RSS], high);
	}
	(void)state;
}

static void group(struct tape *t, uint64_t ns, uint64_t anonymous, uint64_t usage, uint64_t kills)
{
	struct event_level *l = t->levels[t->count];

	sample(t, ns, 0, TRACE_LEVEL_CG_ANON, anonymous, 0);
	l[1] = (struct event_level){TRACE_LEVEL_CG_CURRENT, usage};
	l[2] = (struct event_level){TRACE_LEVEL_CG_OOM_KILL, kills};
	l[3] = (struct event_level){TRACE_LEVEL_CG_SHMEM, usage - anonymous};
	t->events[t->count - 1].level_count = 4;
}

static void child_end(struct tape *t, uint64_t ns, uint32_t pid, uint32_t flags)
{
	t->events[t->count] = (struct event){.kind = EV_CHILD_END, .time_ns = ns};
	t->events[t->count].u.child.pid = pid;
	t->events[t->count].u.child.flags = flags;
	t->events[t->count++].u.child.how = TRACE_END_SIGNAL;
}

/* The cgroup after its killer struck: shared memory is others' at once, anonymous memory once
 * our child has exited; neither describes the time before. */
static void test_after(void **state)
{
	static struct tape t;
	static struct supervised s;
	struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
	struct err err;

	sample(&t, 1000000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
	group(&t, 1001000000, 900, 1000, 3);
	group(&t, 1040000000, 700, 1100, 4); /* it dies */
	group(&t, 1041000000, 690, 1095, 4); /* goes on to */
	child_end(&t, 1050000000, 5, 1);
	group(&t, 1051000000, 150, 620, 4);
	assert_int_equal(read_it(&feed, 0, &s, &err), 0);
	assert_int_equal(levels_value(&s.last, TRACE_LEVEL_CG_ANON), 900);
	assert_int_equal(levels_value(&s.last, TRACE_LEVEL_CG_SHMEM), 100);
	assert_int_equal(levels_value(&s.last, TRACE_LEVEL_CG_OOM_KILL), 4);
	assert_int_equal(levels_value(&s.after, TRACE_LEVEL_CG_SHMEM), 400);
	assert_int_equal(levels_value(&s.after, TRACE_LEVEL_CG_ANON), 150);

	/* Another process was killed: the next sample is as good as any. */
	memset(&t, 0, sizeof(t));
	sample(&t, 1000000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
	group(&t, 1001000000, 900, 1000, 3);
	group(&t, 1040000000, 850, 900, 4);
	group(&t, 1140000000, 880, 950, 4);
	assert_int_equal(read_it(&feed, 0, &s, &err), 0);
	assert_int_equal(levels_value(&s.last, TRACE_LEVEL_CG_ANON), 880);
	assert_false(s.after.known[TRACE_LEVEL_CG_SHMEM]);
	(void)state;
}

/* A process without a waiting parent ended with the started one; what that gave back was not
 * free before. */
static void test_killed_with_another(void **state)
{
	static struct tape t;
	static struct supervised s;
	struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
	struct err err;

	sample(&t, 1000000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
	sample(&t, 1001000000, 0, TRACE_LEVEL_SYS_AVAILABLE, 5000, 0);
	child_end(&t, 2000000000, 4, 1);
	t.events[t.count - 1].u.child.code = 9;
	sample(&t, 2001000000, 0, TRACE_LEVEL_SYS_AVAILABLE, 5900, 0);
	assert_int_equal(read_it(&feed, 0, &s, &err), 0);
	assert_int_equal(supervised_killed_with(&s, 1900000000), 4);
	assert_int_equal(levels_value(&s.last, TRACE_LEVEL_SYS_AVAILABLE), 5000);
	/* It ended long before. */
	s.root_killed_ns += 60000000000;
	assert_int_equal(supervised_killed_with(&s, 1900000000), 0);
	/* It is the started one, or has an end of its own, or the other's signal differs. */
	t.events[2].u.child.pid = 5;
	assert_int_equal(read_it(&feed, 0, &s, &err), 0);
	assert_int_equal(supervised_killed_with(&s, 1900000000), 0);
	t.events[2].u.child.pid = 4;
	t.events[2].u.child.code = 15;
	assert_int_equal(read_it(&feed, 0, &s, &err), 0);
	assert_int_equal(supervised_killed_with(&s, 1900000000), 0);
	(void)state;
}

/* The process's sample nearest to the cgroup's stands beside it, before or after. */
static void test_beside(void **state)
{
	static const struct {
		uint64_t before_ns, after_ns, expect;
	} of[] = {{1000000, 5000000, 800}, {50000000, 300000, 830}, {50000000, 60000000, 800}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		static struct tape t;
		static struct supervised s;
		struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
		struct err err;

		memset(&t, 0, sizeof(t));
		sample(&t, 1000000000 - of[i].before_ns, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
		group(&t, 1000000000, 900, 1000, 3);
		sample(&t, 1000000000 + of[i].after_ns, 5, TRACE_LEVEL_RSS_ANON, 830, 930);
		sample(&t, 2000000000, 5, TRACE_LEVEL_RSS_ANON, 870, 970);
		assert_int_equal(read_it(&feed, 0, &s, &err), 0);
		assert_int_equal(levels_value(&s.last, MODEL_LEVEL_BESIDE), of[i].expect);
		assert_int_equal(s.last.time_ns[MODEL_LEVEL_BESIDE], 1000000000);
	}
	(void)state;
}

/* A process that was last seen a quarter of a second before its group is not beside it: it may have
 * grown since, and what it grew is not another process's. */
static void test_not_beside(void **state)
{
	for (uint64_t apart = 249000000; apart <= 251000000; apart += 2000000) {
		static struct tape t;
		static struct supervised s;
		struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
		struct err err;

		memset(&t, 0, sizeof(t));
		sample(&t, 1000000000, 5, TRACE_LEVEL_RSS_ANON, 800, 900);
		group(&t, 1001000000, 900, 1000, 3);
		group(&t, 1000000000 + apart, 990, 1090, 3);
		assert_int_equal(read_it(&feed, 0, &s, &err), 0);
		assert_int_equal(s.last.known[MODEL_LEVEL_BESIDE], apart < 250000000);
	}
	(void)state;
}

/* Others' growth since the cgroup's last sample, by their own private memory. What they give
 * back after the kill, they had. */
static void test_others(void **state)
{
	static struct tape t;
	static struct supervised s;
	struct feed feed = {.self = &t, .next = next, .rewind = rewind_tape};
	struct err err;

	sample(&t, 1000000000, 6, TRACE_LEVEL_PRIVATE_DIRTY, 300, 900);
	sample(&t, 1000100000, 7, TRACE_LEVEL_PRIVATE_DIRTY, 40, 90);
	sample(&t, 1000200000, 9, TRACE_LEVEL_RSS_ANON, 777, 900); /* its shared part is unknown */
	group(&t, 1001000000, 900, 1000, 3);
	sample(&t, 1010000000, 6, TRACE_LEVEL_PRIVATE_DIRTY, 350, 900); /* 50 more */
	sample(&t, 1010000001, 7, TRACE_LEVEL_PRIVATE_DIRTY, 99, 90);
	sample(&t, 1010000002, 8, TRACE_LEVEL_PRIVATE_DIRTY, 70, 90); /* is new */
	child_end(&t, 1020000000, 7, 0); /* its memory is released */
	group(&t, 1040000000, 850, 900, 4);
	sample(&t, 1041000000, 8, TRACE_LEVEL_PRIVATE_DIRTY, 10, 20);
	child_end(&t, 1050000000, 5, 1);
	assert_int_equal(read_it(&feed, 0, &s, &err), 0);
	assert_int_equal(s.others_grown, 120);

	/* One sample in two records, the quick part first. */
	memset(&t, 0, sizeof(t));
	sample(&t, 1000000000, 6, TRACE_LEVEL_RSS_ANON, 500, 900);
	rest_of_look(&t, 1000500000, 6, TRACE_LEVEL_PRIVATE_DIRTY, 300);
	group(&t, 1001000000, 900, 1000, 3);
	sample(&t, 1010000000, 6, TRACE_LEVEL_RSS_ANON, 570, 900);
	assert_int_equal(read_it(&feed, 0, &s, &err), 0);
	assert_int_equal(s.others_grown, 70);

	/* Between two rollups resident memory tells. */
	memset(&t, 0, sizeof(t));
	sample(&t, 1000000000, 6, TRACE_LEVEL_PRIVATE_DIRTY, 300, 900);
	t.levels[0][1] = (struct event_level){TRACE_LEVEL_RSS_ANON, 500};
	group(&t, 1001000000, 900, 1000, 3);
	sample(&t, 1010000000, 6, TRACE_LEVEL_RSS_ANON, 580, 900);
	assert_int_equal(read_it(&feed, 0, &s, &err), 0);
	assert_int_equal(s.others_grown, 80);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_read),
	    cmocka_unit_test(test_killed_with_another), cmocka_unit_test(test_fallen),
	    cmocka_unit_test(test_rest_of_look), cmocka_unit_test(test_dying),
	    cmocka_unit_test(test_torn_down), cmocka_unit_test(test_killed),
	    cmocka_unit_test(test_struck), cmocka_unit_test(test_peak),
	    cmocka_unit_test(test_after), cmocka_unit_test(test_beside),
	    cmocka_unit_test(test_not_beside), cmocka_unit_test(test_others)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
