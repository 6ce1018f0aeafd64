/* malloc's accounts, with the blocks that lived then. */
#include "model/unit.h"

#include "model/heap/allocator_stats.h"
#include "trace/event.h"

static void note(
    struct allocator_stats *a, uint64_t time_ns, uint64_t arena, uint64_t free, uint64_t live)
{
	struct event_level levels[] = {
	    {TRACE_LEVEL_MALLOC_ARENA, arena}, {TRACE_LEVEL_MALLOC_FREE, free}};
	struct event e = {.kind = EV_LEVEL, .time_ns = time_ns, .levels = levels, .level_count = 2};

	allocator_stats_note(
	    a, &e, &(struct allocator_reading){.live_bytes = live, .live_count = 1});
}

static void test_answer(void **state)
{
	static struct allocator_stats a;
	struct event_level whole[] = {
	    {TRACE_LEVEL_MALLOC_ARENA, 50}, {TRACE_LEVEL_MALLOC_MMAP, 10}};
	struct event e = {.time_ns = 200, .levels = whole, .level_count = 2};

	assert_null(allocator_stats_at(&a, UINT64_MAX));
	note(&a, 100, 1000, 700, 250);
	assert_null(allocator_stats_at(&a, 99));
	assert_int_equal(allocator_stats_at(&a, 100)->free, 700);
	assert_true(allocator_stats_at(&a, 100)->split);
	assert_int_equal(allocator_stats_beside(allocator_stats_at(&a, 150)), 750);
	allocator_stats_note(&a, &e, &(struct allocator_reading){.live_bytes = 70});
	assert_int_equal(allocator_stats_at(&a, 199)->arena, 1000);
	assert_false(allocator_stats_at(&a, 200)->split);
	assert_int_equal(allocator_stats_held(allocator_stats_at(&a, 200)), 60);
	assert_int_equal(allocator_stats_beside(allocator_stats_at(&a, 200)), 0);
	/* No account, and impossible ones. */
	e.levels = whole + 1;
	e.level_count = 1;
	allocator_stats_note(&a, &e, &(struct allocator_reading){.live_bytes = 70});
	note(&a, 300, UINT64_MAX, 1, 1);
	note(&a, 300, 1, 2, 1);
	assert_int_equal(a.count, 2);
	(void)state;
}

/* The interpreter's: bytes not in use are free, up to the total. */
static void test_arenas(void **state)
{
	static struct allocator_stats a;
	struct event_level levels[] = {
	    {TRACE_LEVEL_PYTHON_ARENAS, 1000}, {TRACE_LEVEL_PYTHON_USED, 300}};
	struct event e = {.kind = EV_LEVEL, .time_ns = 100, .levels = levels, .level_count = 2};

	allocator_stats_note(&a, &e, &(struct allocator_reading){.live_count = 1});
	assert_int_equal(a.count, 0);
	allocator_stats_note_arenas(&a, &e);
	assert_int_equal(allocator_stats_at(&a, 100)->free, 700);
	levels[1].value = 1010; /* extrapolated */
	allocator_stats_note_arenas(&a, &e);
	assert_int_equal(allocator_stats_at(&a, 100)->free, 0);
	e.level_count = 1;
	allocator_stats_note_arenas(&a, &e);
	assert_int_equal(a.count, 2);
	(void)state;
}

/* The newest of many stays, and an even part of the others. */
static void test_many(void **state)
{
	static struct allocator_stats a;

	for (uint64_t i = 1; i <= 1000; i++) {
		note(&a, i, 10 * i, 0, 0);
		assert_int_equal(allocator_stats_at(&a, UINT64_MAX)->time_ns, i);
	}
	for (uint32_t i = 1; i < a.count; i++)
		assert_true(a.at[i].time_ns > a.at[i - 1].time_ns);
	assert_in_range(allocator_stats_at(&a, 500)->time_ns, 350, 500);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_answer),
	    cmocka_unit_test(test_arenas), cmocka_unit_test(test_many)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
