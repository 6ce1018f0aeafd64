/* The operations that a process's events become. */
#include "model/unit.h"

#include "model/script.h"
#include "replay/plan/planner.h"
#include "replay/read_plan.h"

#define PAGE 4096ull

struct made {
	struct plan plan;
	struct plan_facts facts;
};

static void make(struct script *s, const struct plan_last *last, struct made *out)
{
	struct recorded recorded;
	struct plan_last none = {0};
	FILE *f = tmpfile();
	struct err err;

	assert_non_null(f);
	assert_int_equal(recorded_read(script_feed(s), NULL, 0, &recorded, &err), 0);
	assert_int_equal(
	    plan_make(&(struct plan_source){script_feed(s), &recorded, last ? last : &none}, 0, f,
		&out->facts, &err),
	    0);
	plan_read(f, &out->plan);
	assert_int_equal(out->plan.header.samples, out->facts.moments.count);
	recorded_fini(&recorded);
	fclose(f);
}

static void done(struct script *s, struct made *m)
{
	plan_forget(&m->plan);
	plan_facts_fini(&m->facts);
	script_free(s);
}

/* The n-th operation that is no sample. */
static const struct plan_op *op(const struct made *m, unsigned n)
{
	for (uint64_t i = 0; i < m->plan.header.ops; i++)
		if ((m->plan.ops[i].what & PLAN_WHAT) != PLAN_SAMPLE && !n--)
			return &m->plan.ops[i];
	fail();
	return NULL;
}

static unsigned count(const struct made *m, enum plan_what what)
{
	unsigned n = 0;

	for (uint64_t i = 0; i < m->plan.header.ops; i++)
		n += (m->plan.ops[i].what & PLAN_WHAT) == what;
	return n;
}

static void test_blocks(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	uint64_t x = script_alloc(s, a, 1000), y = script_alloc(s, a, 5 * GiB);
	struct made m;

	script_release(s, x);
	script_release(s, y);
	script_release(s, 0x1234567000); /* of no block */
	make(s, NULL, &m);
	assert_int_equal(op(&m, 0)->what, PLAN_MALLOC);
	assert_int_equal(plan_size(op(&m, 0)), 1000);
	assert_int_equal(plan_size(op(&m, 1)), 5 * GiB);
	assert_int_equal(op(&m, 2)->what, PLAN_FREE);
	assert_int_equal(op(&m, 2)->slot, op(&m, 0)->slot);
	assert_int_equal(count(&m, PLAN_FREE), 2);
	assert_int_equal(m.facts.unknown_releases, 1);
	assert_int_equal(m.facts.peak_live, 1000 + 5 * GiB);
	done(s, &m);
	(void)state;
}

static void test_realloc_is_one(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	uint64_t x = script_alloc(s, a, 1000);
	struct made m;

	x = script_realloc(s, x, a, 3000);
	script_release(s, x);
	make(s, NULL, &m);
	assert_int_equal(op(&m, 1)->what, PLAN_REALLOC);
	assert_int_equal(op(&m, 1)->slot, op(&m, 0)->slot);
	assert_int_equal(plan_size(op(&m, 1)), 3000);
	assert_int_equal(op(&m, 2)->what, PLAN_FREE);
	/* Both were never alive at once. */
	assert_int_equal(m.facts.peak_live, 3000);
	done(s, &m);
	(void)state;
}

static void test_mappings_in_pieces(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	struct made m;

	script_map_at(s, a, 100 * PAGE, 10 * PAGE, 0);
	script_unmap(s, 103 * PAGE, 2 * PAGE);
	script_map_at(s, a, 200 * PAGE, 10 * PAGE, TRACE_MAP_ALLOCATOR);
	script_map_at(s, a, 300 * PAGE, 10 * PAGE, TRACE_MAP_SHARED);
	script_map_at(s, a, 108 * PAGE, 4 * PAGE, TRACE_MAP_FIXED);
	make(s, NULL, &m);
	assert_int_equal(op(&m, 0)->what, PLAN_MAP);
	assert_int_equal(op(&m, 0)->shift, PLAN_MEMORY);
	assert_int_equal(op(&m, 1)->what, PLAN_AT);
	assert_int_equal(plan_size(op(&m, 1)), 3 * PAGE);
	assert_int_equal(op(&m, 2)->what, PLAN_UNMAP);
	assert_int_equal(plan_size(op(&m, 2)), 2 * PAGE);
	/* The blocks under a fixed mapping go first. */
	assert_int_equal(plan_size(op(&m, 3)), 8 * PAGE);
	assert_int_equal(plan_size(op(&m, 4)), 2 * PAGE);
	assert_int_equal(op(&m, 5)->what, PLAN_MAP);
	assert_int_equal(count(&m, PLAN_MAP), 2);
	assert_int_equal(m.facts.other_mappings, 2);
	assert_int_equal(m.facts.peak_live, 10 * PAGE);
	done(s, &m);
	(void)state;
}

static void test_refusals(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
	struct plan_last last = {.size = 700};
	struct made m;

	script_alloc(s, a, 100);
	script_failed(s, a, 900);
	script_alloc(s, a, 100);
	script_failed(s, b, 700);
	last.time_ns = script_now(s);
	last.stack = b;
	/* Later events are no part of the peak. */
	script_alloc(s, a, 5000);
	make(s, &last, &m);
	assert_int_equal(op(&m, 1)->what, PLAN_MALLOC | PLAN_REFUSED);
	assert_int_equal(plan_size(op(&m, 1)), 900);
	assert_int_equal(op(&m, 3)->what, PLAN_MALLOC | PLAN_REFUSED | PLAN_LAST);
	assert_int_equal(m.facts.last_event, 3);
	assert_int_equal(m.facts.peak_live, 200);
	done(s, &m);
	(void)state;
}

static void test_threads(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	uint64_t x;
	struct made m;

	x = script_alloc(s, a, 100);
	script_thread(s, 7, 0);
	script_alloc(s, a, 100);
	script_release(s, x);
	script_event(s, EV_THREAD_EXIT, TRACE_SPACE_HOST);
	make(s, NULL, &m);
	assert_int_equal(m.plan.header.threads, 2);
	assert_int_equal(count(&m, PLAN_SPAWN), 1);
	assert_int_equal(count(&m, PLAN_EXIT), 1);
	/* Each its own, and the second releases the first one's block later. */
	for (uint32_t i = m.plan.firsts[1]; i != PLAN_NONE; i = m.plan.parts[i].next)
		for (uint32_t n = 0; n < m.plan.parts[i].count; n++)
			if (m.plan.ops[m.plan.parts[i].first + n].what == PLAN_FREE)
				assert_true(m.plan.parts[i].before > 0);
	done(s, &m);
	(void)state;
}

/* An ended thread makes no thread. */
static void test_a_thread_after_another_ended(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	struct made m;

	script_alloc(s, a, 100);
	script_thread(s, 7, 0);
	script_alloc(s, a, 100);
	script_event(s, EV_THREAD_EXIT, TRACE_SPACE_HOST);
	script_thread(s, 8, 0);
	script_alloc(s, a, 100);
	make(s, NULL, &m);
	assert_int_equal(m.plan.header.threads, 3);
	for (uint32_t i = 0; i < m.plan.header.parts; i++)
		for (uint32_t n = 0; n < m.plan.parts[i].count; n++)
			if (m.plan.ops[m.plan.parts[i].first + n].what == PLAN_SPAWN)
				assert_int_equal(m.plan.parts[i].thread, 0);
	done(s, &m);
	(void)state;
}

static void test_samples(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	struct plan_origin origin;
	struct recorded recorded;
	struct plan_last none = {0};
	struct err err;
	struct made m;

	script_set(s, TRACE_LEVEL_RSS, MiB);
	script_alloc(s, a, 100);
	script_sample(s);
	script_alloc(s, a, 200 * KiB);
	make(s, NULL, &m);
	/* The measured one, with the blocks that lived before it; and the peak. */
	assert_int_equal(m.facts.moments.count >= 2, true);
	assert_int_equal(
	    m.facts.moments.items[0].recorded == 0 || m.facts.moments.items[1].recorded == 0, true);
	for (size_t i = 0; i < m.facts.moments.count; i++) {
		const struct plan_moment *at = &m.facts.moments.items[i];

		if (at->recorded == 0)
			assert_int_equal(at->live[0], 100);
		if (at->peak)
			assert_int_equal(at->live[plan_class(PLAN_BLOCK, 200 * KiB)], 200 * KiB);
	}
	/* And back: the second operation of the thread that is no sample. */
	assert_int_equal(recorded_read(script_feed(s), NULL, 0, &recorded, &err), 0);
	for (uint64_t n = 0; n < m.plan.header.ops; n++) {
		if (plan_size(&m.plan.ops[n]) != 200 * KiB)
			continue;
		origin = (struct plan_origin){.thread = 0, .n = n};
		assert_int_equal(plan_find(&(struct plan_source){script_feed(s), &recorded, &none},
				     &m.facts, &origin, &err),
		    1);
		assert_int_equal(origin.event.size, 200 * KiB);
		assert_int_equal(origin.index, 1);
	}
	recorded_fini(&recorded);
	done(s, &m);
	(void)state;
}

static uint64_t young_at(const struct made *m, uint32_t recorded)
{
	for (size_t i = 0; i < m->facts.moments.count; i++)
		if (m->facts.moments.items[i].recorded == recorded)
			return m->facts.moments.items[i].young;
	fail();
	return 0;
}

/* Large blocks are written to one after the other, at a byte a ns: 10 MiB in a step. */
static void test_young(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	uint64_t block;
	struct made m;

	script_step(s, 10000000);
	script_set(s, TRACE_LEVEL_RSS, 100 * MiB);
	script_set(s, TRACE_LEVEL_RSS_ANON, 10 * MiB);
	script_sample(s);
	script_set(s, TRACE_LEVEL_RSS_ANON, 20 * MiB);
	script_sample(s);
	block = script_alloc(s, a, 100 * MiB);
	script_sample(s);
	script_alloc(s, a, 40 * MiB);
	script_sample(s);
	script_release(s, block);
	script_sample(s);
	for (int i = 0; i < 4; i++)
		script_sample(s);
	make(s, NULL, &m);
	assert_in_range(young_at(&m, 2), 75 * MiB, 100 * MiB);
	assert_in_range(young_at(&m, 3), young_at(&m, 2) + 15 * MiB, young_at(&m, 2) + 40 * MiB);
	assert_in_range(young_at(&m, 4), 5 * MiB, 40 * MiB); /* the other is released */
	assert_int_equal(young_at(&m, 8), 0); /* old */
	done(s, &m);
	(void)state;
}

/* Replayed at a speed, each event waits for its time. */
static void test_pace(void **state)
{
	struct plan_last none = {0};
	struct recorded recorded = {0};
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a");
	size_t counts[2];

	script_step(s, 1000000);
	for (int i = 0; i < 100; i++)
		script_release(s, script_alloc(s, a, 100));
	for (int paced = 0; paced < 2; paced++) {
		struct plan_facts facts;
		struct err err = {""};
		FILE *f = tmpfile();

		assert_int_equal(plan_make(&(struct plan_source){script_feed(s), &recorded, &none},
				     paced ? 10000000 : 0, f, &facts, &err),
		    0);
		counts[paced] = facts.moments.count;
		for (size_t i = 1; i + 1 < facts.moments.count && paced; i++)
			assert_in_range(
			    facts.moments.items[i].time_ns - facts.moments.items[i - 1].time_ns, 0,
			    12000000);
		plan_facts_fini(&facts);
		fclose(f);
	}
	assert_in_range(counts[1] - counts[0], 15, 40); /* of 200 ms and more */
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_blocks),
	    cmocka_unit_test(test_realloc_is_one),
	    cmocka_unit_test(test_mappings_in_pieces),
	    cmocka_unit_test(test_refusals),
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_a_thread_after_another_ended),
	    cmocka_unit_test(test_samples),
	    cmocka_unit_test(test_young),
	    cmocka_unit_test(test_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
