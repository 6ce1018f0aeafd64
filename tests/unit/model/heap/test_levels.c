/* The newest value of each key; keys of a newer version are left alone. */
#include "model/unit.h"

#include "model/model.h"
#include "model/script.h"

static void test_levels(void **state)
{
	static struct levels l;
	uint64_t value = 42;

	assert_false(levels_get(&l, TRACE_LEVEL_RSS, &value));
	assert_int_equal(value, 42);
	levels_set(&l, TRACE_LEVEL_RSS, 0, 5); /* nothing resident is a value */
	assert_true(levels_get(&l, TRACE_LEVEL_RSS, &value));
	assert_int_equal(value, 0);
	levels_set(&l, TRACE_LEVEL_RSS, 7, 6);
	assert_int_equal(l.time_ns[TRACE_LEVEL_RSS], 6);
	levels_set(&l, MODEL_LEVELS, 1, 1);
	levels_set(&l, UINT32_MAX, 1, 1);
	assert_false(levels_get(&l, UINT32_MAX, &value));
	(void)state;
}

static void test_stacks(void **state)
{
	static struct levels l;
	uint64_t value;

	levels_carry_stacks(&l, 5, 0);
	assert_false(levels_get(&l, TRACE_LEVEL_VIRT_THREADS, &value));
	levels_set(&l, TRACE_LEVEL_THREADS, 3, 1);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 16 * MiB, 1);
	levels_carry_stacks(&l, 10, 0);
	assert_true(levels_get(&l, TRACE_LEVEL_VIRT_THREADS, &value));
	assert_int_equal(value, 72 * MiB);
	levels_set(&l, TRACE_LEVEL_THREADS, 10, 2);
	levels_carry_stacks(&l, 8, 0); /* no fewer than these need */
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 56 * MiB);
	l.value[TRACE_LEVEL_VIRT_THREADS] = 72 * MiB;
	levels_carry_stacks(&l, 1, 0); /* the others ended; some of their stacks remain */
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 40 * MiB);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 16 * MiB, 2);
	levels_carry_stacks(&l, 1, 0);
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 16 * MiB);
	levels_set(&l, TRACE_LEVEL_THREADS, 1, 3);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 7, 3);
	levels_carry_stacks(&l, 4, 0); /* one thread tells nothing of others */
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 7);
	/* Four of known size, with a guard each; ended threads left three of them. */
	levels_set(&l, TRACE_LEVEL_THREADS, 2, 4);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 4 * (8 * MiB + 4096), 4);
	levels_carry_stacks(&l, 31, 8 * MiB);
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 30 * (8 * MiB + 4096));
	/* All of them are left over, and no thread lives. */
	levels_set(&l, TRACE_LEVEL_THREADS, 1, 5);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 4 * (8 * MiB + 4096), 5);
	levels_carry_stacks(&l, 31, 8 * MiB);
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 30 * (8 * MiB + 4096));
	/* More are left than glibc keeps, so nobody joined those threads, and they stay. */
	levels_set(&l, TRACE_LEVEL_THREADS, 3, 6);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 102 * (8 * MiB + 4096), 6);
	levels_carry_stacks(&l, 11, 8 * MiB);
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 110 * (8 * MiB + 4096));
	/* Of another size: the average. */
	levels_set(&l, TRACE_LEVEL_THREADS, 3, 6);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 2 * MiB, 6);
	levels_carry_stacks(&l, 11, 8 * MiB);
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 10 * MiB);
	(void)state;
}

/* --- allocators' own statistics, with the blocks that lived then --- */

static void note(struct model *m, uint64_t time_ns, uint64_t arena, uint64_t free, uint64_t live)
{
	struct event_level levels[] = {
	    {TRACE_LEVEL_MALLOC_ARENA, arena}, {TRACE_LEVEL_MALLOC_FREE, free}};
	struct event e = {.kind = EV_LEVEL, .time_ns = time_ns, .levels = levels, .level_count = 2};

	m->blocks.bytes = live;
	measured_note(m, &e);
}

static void test_reading(void **state)
{
	static struct model m;
	const struct allocator_stats *a = &m.measured.malloc;
	struct event_level whole[] = {
	    {TRACE_LEVEL_MALLOC_ARENA, 50}, {TRACE_LEVEL_MALLOC_MMAP, 10}};
	struct event e = {.time_ns = 200, .levels = whole, .level_count = 2};

	assert_null(allocator_stats_at(a, UINT64_MAX));
	note(&m, 100, 1000, 700, 250);
	assert_null(allocator_stats_at(a, 99));
	assert_int_equal(allocator_stats_at(a, 100)->free, 700);
	assert_true(allocator_stats_at(a, 100)->split);
	assert_int_equal(allocator_stats_beside(allocator_stats_at(a, 150)), 750);
	m.blocks.bytes = 70;
	measured_note(&m, &e);
	assert_int_equal(allocator_stats_at(a, 199)->arena, 1000);
	assert_false(allocator_stats_at(a, 200)->split);
	assert_int_equal(allocator_stats_held(allocator_stats_at(a, 200)), 60);
	assert_int_equal(allocator_stats_beside(allocator_stats_at(a, 200)), 0);
	/* No account, and impossible ones. */
	e.levels = whole + 1;
	e.level_count = 1;
	measured_note(&m, &e);
	note(&m, 300, UINT64_MAX, 1, 1);
	note(&m, 300, 1, 2, 1);
	assert_int_equal(a->count, 2);
	(void)state;
}

/* The interpreter's: bytes not in use are free, up to the total. */
static void test_arenas(void **state)
{
	static struct model m;
	const struct allocator_stats *a = &m.measured.arenas;
	struct event_level levels[] = {
	    {TRACE_LEVEL_PYTHON_ARENAS, 1000}, {TRACE_LEVEL_PYTHON_USED, 300}};
	struct event e = {.kind = EV_LEVEL, .time_ns = 100, .levels = levels, .level_count = 2};

	measured_note(&m, &e);
	assert_int_equal(allocator_stats_at(a, 100)->free, 700);
	levels[1].value = 1010; /* extrapolated */
	measured_note(&m, &e);
	assert_int_equal(allocator_stats_at(a, 100)->free, 0);
	e.level_count = 1;
	measured_note(&m, &e);
	assert_int_equal(a->count, 2);
	assert_int_equal(m.measured.malloc.count, 0);
	(void)state;
}

/* The newest of many stays, and an even part of the others. */
static void test_many(void **state)
{
	static struct model m;
	const struct allocator_stats *a = &m.measured.malloc;

	for (uint64_t i = 1; i <= 1000; i++) {
		note(&m, i, 10 * i, 0, 0);
		assert_int_equal(allocator_stats_at(a, UINT64_MAX)->time_ns, i);
	}
	for (uint32_t i = 1; i < a->count; i++)
		assert_true(a->at[i].time_ns > a->at[i - 1].time_ns);
	assert_in_range(allocator_stats_at(a, 500)->time_ns, 350, 500);
	(void)state;
}

/* Readings of the address space are thinned evenly, and the newest is always there. */
static void test_address(void **state)
{
	struct script *s = script_new();
	uint32_t stack = script_stack(s, "main;serve");
	const struct address_space *a;
	struct err err = {""};
	struct model *m;

	for (unsigned i = 1; i <= 1000; i++) {
		script_alloc(s, stack, 100);
		script_level(s, TRACE_LEVEL_VSIZE, i * MiB);
		script_level(s, TRACE_LEVEL_RSS, 1);
	}
	assert_int_equal(feed_until_model(script_feed(s), UINT64_MAX, UINT64_MAX, &m, &err), 0);
	a = &m->measured.address;
	assert_true(a->count > ADDRESS_READINGS / 2 - 1 && a->count <= ADDRESS_READINGS);
	assert_int_equal(a->at[0].bytes, MiB);
	assert_int_equal(a->at[a->count - 1].bytes, 1000 * MiB);
	for (uint32_t i = 0; i < a->count; i++) {
		assert_int_equal(a->at[i].live_bytes, a->at[i].bytes / MiB * 100);
		assert_true(!i || a->at[i].bytes > a->at[i - 1].bytes);
		assert_true(!i || a->at[i].bytes - a->at[i - 1].bytes <= 1000 * MiB * 2 / a->count);
	}
	model_free(m);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels),
	    cmocka_unit_test(test_stacks), cmocka_unit_test(test_address),
	    cmocka_unit_test(test_reading), cmocka_unit_test(test_arenas),
	    cmocka_unit_test(test_many)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
