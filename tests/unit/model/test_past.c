/* The time that a checkpoint took the place of: sums, the course, and what may be said of who
 * stays. */
#include "model/world.h"

/* A period of a server that acquired and released `work` bytes, and kept what is told. */
static uint64_t period(
    struct script *s, uint64_t begin_ns, uint64_t work, uint64_t kept, uint64_t most)
{
	struct event *e = script_event(s, EV_CHECKPOINT, TRACE_SPACE_HOST);

	e->u.period.begin_ns = begin_ns;
	e->u.period.trace_bytes = 1 << 20;
	e->u.period.acquired = (work + kept) / KiB;
	e->u.period.acquired_bytes = work + kept;
	e->u.period.released = work / KiB;
	e->u.period.released_bytes = work;
	e->u.period.most_bytes = most;
	e->u.period.left_out = 1;
	script_facts(s)->checkpoint.number = 1;
	script_facts(s)->checkpoint.until_ns = e->time_ns;
	return e->time_ns;
}

/* The process worked at 100 MiB all the time, of which 10 outlived it. */
static void test_the_course(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t stack = script_stack(w.s, "main;keep");
	const struct timeline *t;
	uint64_t until = 0;

	script_step(w.s, 1000000);
	for (int i = 0; i < 2; i++) {
		uint64_t from = until;

		for (int k = 0; k < 50; k++)
			script_alloc(w.s, stack, 100 * KiB);
		until = period(w.s, from, i ? GiB : GiB - 100 * MiB, i ? 0 : 100 * MiB, 100 * MiB);
	}
	look(&w);
	t = &w.m->timeline;
	assert_true(w.m->past.count == 2 && w.m->past.left_out == 2 &&
		    w.m->past.trace_bytes == 2 << 20 && w.m->past.most_bytes == 100 * MiB &&
		    w.m->past.periods[1].begin_ns == w.m->past.periods[0].end_ns);
	/* All that was acquired is in it once, be it known one by one or not. */
	assert_in_range(timeline_acquired(t, 0, until + 1), 2040 * MiB, 2048 * MiB);
	assert_in_range(timeline_acquired(t, 0, until / 2), 980 * MiB, 1060 * MiB);
	assert_in_range(timeline_live(t, until * 3 / 4), 95 * MiB, 100 * MiB);
	for (uint32_t i = 0; i < t->used; i++)
		assert_true(t->periods[i].most >= 100 * MiB &&
			    t->periods[i].least <= t->periods[i].last &&
			    t->periods[i].last <= t->periods[i].most);
	assert_true(w.m->live_bytes < 10 * MiB); /* which is what lives */
	end(&w);

	/* Numbers of a damaged one. */
	w.s = script_new();
	script_alloc(w.s, stack, MiB);
	for (int i = 0; i < 80; i++)
		period(w.s, 0, UINT64_MAX / 2, UINT64_MAX / 4, UINT64_MAX);
	look(&w);
	assert_true(w.m->past.acquired_bytes == UINT64_MAX && w.m->past.count == 64);
	end(&w);
	(void)state;
}

/* A cache that exchanges all of its content, of which a checkpoint knows the last one only; and a
 * leak that began with the program. At both, what is known of the time before was never released.
 */
static void test_who_stays(void **state)
{
	for (int since = 0; since < 2; since++) {
		struct world w = {.s = script_new()};
		uint32_t cache = script_stack(w.s, "main;cache"),
			 leak = script_stack(w.s, "main;leak");
		uint32_t work = script_stack(w.s, "main;work");
		uint64_t content[200];

		script_step(w.s, 1000000);
		for (int i = 0; i < 800; i++) {
			if (i % 4 == 0)
				script_alloc(w.s, leak, 10 * KiB);
			else
				script_wait(w.s, 1000000);
			if (i >= 600) /* the others are gone */
				content[i - 600] = script_alloc(w.s, cache, 10 * KiB);
		}
		period(w.s, 0, GiB, 4 * MiB, 20 * MiB);
		for (int i = 0; since && i < 120; i++) {
			script_release(w.s, content[i]);
			content[i] = script_alloc(w.s, cache, 10 * KiB);
			script_alloc(w.s, leak, 10 * KiB);
			script_release(w.s, script_alloc(w.s, work, 100 * KiB));
		}
		look(&w);
		assert_false(at(&w, cache)->keep.stays);
		assert_true(at(&w, leak)->keep.stays);
		assert_int_equal(at(&w, cache)->keep.count, 200);
		assert_int_equal(at(&w, leak)->keep.count, since ? 320 : 200);
		end(&w);
	}
	(void)state;
}

/* Most of what a line makes is given back; of what it made before, one in ten outlived that. */
static void test_few_of_many_stay(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t some = script_stack(w.s, "main;some");

	script_step(w.s, 1000000);
	for (int i = 0; i < 200; i++) {
		script_wait(w.s, 18000000);
		script_alloc(w.s, some, 10 * KiB);
	}
	period(w.s, 0, GiB, 2 * MiB, 20 * MiB);
	for (int i = 0; i < 1000; i++) {
		uint64_t block = script_alloc(w.s, some, 10 * KiB);

		if (i % 10)
			script_release(w.s, block);
	}
	look(&w);
	assert_true(at(&w, some)->keep.stays);
	end(&w);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_course),
	    cmocka_unit_test(test_who_stays),
	    cmocka_unit_test(test_few_of_many_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
