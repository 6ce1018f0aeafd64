/* Replaced periods: sums, the course, and what they tell of survivors. */
#include "model/space/space.h"
#include "model/world.h"

/* A period of a server that acquired and released `work` bytes, and kept the given ones. */
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

/* The process worked at 100 MiB all the time; 10 of them outlived it. */
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
	assert_true(w.m->replaced.count == 2 && w.m->replaced.left_out == 2 &&
		    w.m->replaced.trace_bytes == 2 << 20 && w.m->replaced.most_bytes == 100 * MiB &&
		    w.m->replaced.periods[1].begin_ns == w.m->replaced.periods[0].end_ns);
	/* Every acquisition counts once, known singly or not. */
	assert_in_range(timeline_acquired(t, 0, until + 1), 2040 * MiB, 2048 * MiB);
	assert_in_range(timeline_acquired(t, 0, until / 2), 980 * MiB, 1060 * MiB);
	assert_in_range(timeline_live(t, until * 3 / 4), 95 * MiB, 100 * MiB);
	for (uint32_t i = 0; i < t->used; i++)
		assert_true(t->periods[i].most >= 100 * MiB &&
			    t->periods[i].least <= t->periods[i].last &&
			    t->periods[i].last <= t->periods[i].most);
	assert_true(w.m->blocks.bytes < 10 * MiB); /* the live bytes */
	end(&w);

	/* Numbers of a damaged period. */
	w.s = script_new();
	script_alloc(w.s, stack, MiB);
	for (int i = 0; i < 80; i++)
		period(w.s, 0, UINT64_MAX / 2, UINT64_MAX / 4, UINT64_MAX);
	look(&w);
	assert_true(w.m->replaced.acquired_bytes == UINT64_MAX && w.m->replaced.count == 64);
	end(&w);
	(void)state;
}

/* Turn i of 800: a leak at each fourth, and a cache that holds its last 200 turns. */
static void stay(struct script *s, int i, uint32_t leak, uint32_t cache, uint64_t *content)
{
	if (i % 4 == 0)
		script_alloc(s, leak, 10 * KiB);
	else
		script_wait(s, 1000000);
	if (i >= 600) /* the others are released */
		content[i - 600] = script_alloc(s, cache, 10 * KiB);
}

/* A cache that exchanges all of its content, so a checkpoint knows only the last; and a leak
 * since the program's start. In both, the known blocks of the earlier time were never released. */
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
			stay(w.s, i, leak, cache, content);
		}
		period(w.s, 0, GiB, 4 * MiB, 20 * MiB);
		for (int i = 0; since && i < 120; i++) {
			script_release(w.s, content[i]);
			content[i] = script_alloc(w.s, cache, 10 * KiB);
			script_alloc(w.s, leak, 10 * KiB);
			script_release(w.s, script_alloc(w.s, work, 100 * KiB));
		}
		look(&w);
		assert_false(at(&w, cache)->survivors.stays);
		assert_true(at(&w, leak)->survivors.stays);
		assert_int_equal(at(&w, cache)->survivors.count, 200);
		assert_int_equal(at(&w, leak)->survivors.count, since ? 320 : 200);
		end(&w);
	}
	(void)state;
}

/* Most blocks of a line are released; one in ten of its earlier blocks outlived the period. */
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
	assert_true(at(&w, some)->survivors.stays);
	end(&w);
	(void)state;
}

static void went_of(
    struct script *s, uint32_t space, uint32_t stack, uint64_t largest, uint64_t count)
{
	struct event *e = script_event(s, EV_WENT, space);

	e->stack = stack;
	e->size = largest;
	e->u.went.count = count;
	e->u.went.bytes = count * (largest - largest / 8);
	e->u.went.life_ns = count * 1000;
	e->u.went.longest_ns = 2000;
}

static void went(struct script *s, uint32_t stack, uint64_t largest, uint64_t count)
{
	went_of(s, TRACE_SPACE_HOST, stack, largest, count);
}

/* A device as well as the host. If few sums stand for most of the blocks, and much is known of
 * the short time since, the beginning belongs to the sums. */
static void test_what_went_of_a_space(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t grows = script_stack(w.s, "main;grows"), same = script_stack(w.s, "main;same");
	uint32_t torch = script_space(w.s, "torch:0");
	struct model *of;
	struct callsites *p;
	struct err err;

	script_step(w.s, 1000000);
	for (uint64_t i = 1; i <= 6; i++) {
		went_of(w.s, torch, grows, 50 * (i + 2) * MiB, 2000);
		went_of(w.s, torch, same, 400 * MiB, 2000);
	}
	period(w.s, 0, GiB, 4 * MiB, 20 * MiB);
	for (uint64_t i = 0; i < 1800; i++) {
		script_space_alloc(w.s, torch, grows, GiB, 400 * MiB + i * 16 * KiB);
		script_space_free(w.s, torch, GiB);
		script_space_alloc(w.s, torch, same, GiB, 400 * MiB);
		script_space_free(w.s, torch, GiB);
	}
	look(&w);
	of = spaces_find(w.m->spaces, "torch:0")->model;
	assert_int_equal(callsites_new(of, AT_END, &p, &err), 0);
	assert_true(p->list[callsites_of_stack(p, STACK_STATS_HEAP, grows)].size.grows);
	assert_int_equal(p->list[callsites_of_stack(p, STACK_STATS_HEAP, grows)].facts.freed_count,
	    6 * 2000 + 1800);
	assert_int_equal(
	    p->list[callsites_of_stack(p, STACK_STATS_HEAP, grows)].size.start, 150 * MiB);
	assert_false(p->list[callsites_of_stack(p, STACK_STATS_HEAP, same)].size.grows);
	callsites_free(p);
	end(&w);
	(void)state;
}

/* A block made anew at each turn has one survivor; released blocks tell whether it grew. A leak
 * stays a leak even with released blocks at its line, and exchanged content is none. */
static void test_what_went(void **state)
{
	for (int since = 0; since < 2; since++) {
		struct world w = {.s = script_new()};
		uint32_t grows = script_stack(w.s, "main;grows"),
			 same = script_stack(w.s, "main;same");
		uint32_t leak = script_stack(w.s, "main;leak"),
			 cache = script_stack(w.s, "main;cache");
		uint64_t last, content[200];

		script_step(w.s, 1000000);
		for (int i = 0; i < 800; i++) {
			stay(w.s, i, leak, cache, content);
			if (i % 100 != 99)
				continue;
			went(w.s, grows, MiB * (uint64_t)(i + 1) / 100, 5000);
			went(w.s, same, 4 * MiB, 5000);
			went(w.s, leak, 10 * KiB, 1000000);
			went(w.s, cache, 10 * KiB, 1000000);
		}
		last = script_alloc(w.s, grows, 8 * MiB);
		script_alloc(w.s, same, 4 * MiB);
		period(w.s, 0, GiB, 4 * MiB, 20 * MiB);
		for (uint64_t i = 0; since && i < 120; i++) {
			script_release(w.s, content[i]);
			content[i] = script_alloc(w.s, cache, 10 * KiB);
			script_alloc(w.s, leak, 10 * KiB);
			script_release(w.s, last);
			last = script_alloc(w.s, grows, 8 * MiB + i * 16 * KiB);
			script_release(w.s, script_alloc(w.s, same, 4 * MiB));
		}
		look(&w);
		assert_true(at(&w, grows)->size.grows);
		assert_int_equal(at(&w, grows)->size.start, MiB);
		assert_false(at(&w, same)->size.grows || at(&w, leak)->size.grows);
		assert_true(at(&w, leak)->survivors.stays);
		assert_false(at(&w, cache)->survivors.stays || at(&w, grows)->survivors.stays);
		assert_int_equal(at(&w, leak)->survivors.count, since ? 320 : 200);
		assert_int_equal(at(&w, cache)->survivors.count, 200);
		assert_int_equal(at(&w, grows)->facts.freed_count, since ? 40120 : 40000);
		end(&w);
	}

	/* Numbers of a damaged period. */
	struct world w = {.s = script_new()};
	uint32_t stack = script_stack(w.s, "main;grows");
	static const uint64_t odd[] = {0, 1, 1ull << 53, 1ull << 60, UINT64_MAX};

	script_alloc(w.s, stack, MiB);
	for (size_t i = 0; i < 5 * 5 * 5; i++) {
		struct event *e = script_event(w.s, EV_WENT, i % 7 ? TRACE_SPACE_HOST : 3);

		e->stack = i % 11 ? stack : 0;
		e->size = odd[i % 5];
		e->u.went.count = odd[i / 5 % 5];
		e->u.went.bytes = odd[i / 25];
		e->u.went.life_ns = e->u.went.longest_ns = 1ull << 56;
	}
	look(&w);
	end(&w);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_the_course),
	    cmocka_unit_test(test_who_stays),
	    cmocka_unit_test(test_few_of_many_stay),
	    cmocka_unit_test(test_what_went),
	    cmocka_unit_test(test_what_went_of_a_space),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
