/* test_levels_malloc.c - the allocator's account agrees with libc's, and is not asked for often. */
#include "../under.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/shim_state.h"
#include "levels/levels_malloc.h"
#include "loaded/symbols.h"

static struct level levels[LEVELS_MALLOC_MAX];
static unsigned count;

static uint64_t value(uint32_t key)
{
	for (unsigned i = 0; i < count; i++)
		if (levels[i].key == key)
			return levels[i].value;
	return UINT64_MAX;
}

static void owned_by_libc(bool is)
{
	static struct symbols_module m;

	assert_true(symbols_module_of((void *)abort, &m));
	shim.owner_low = is ? m.low : 1;
	shim.owner_high = is ? m.high : 2;
	shim.owner_is_libc = true;
	levels_malloc_init();
}

static void test_account(void **state)
{
	static void *blocks[10000];
	struct mallinfo2 before, after;

	clock_init();
	owned_by_libc(true);
	for (int i = 0; i < 10000; i++)
		memset(blocks[i] = malloc(1000), 1, 1000);
	for (int i = 0; i < 10000; i += 2)
		free(blocks[i]);
	before = mallinfo2();
	count = levels_malloc_read(levels, 0);
	after = mallinfo2();
	assert_int_equal(count, LEVELS_MALLOC_MAX);
	assert_int_equal(before.arena, after.arena);
	assert_int_equal(value(TRACE_LEVEL_MALLOC_ARENA), after.arena);
	assert_int_equal(value(TRACE_LEVEL_MALLOC_MMAP), after.hblkhd);
	assert_int_equal(value(TRACE_LEVEL_MALLOC_USED), after.uordblks);
	assert_int_equal(value(TRACE_LEVEL_MALLOC_FREE), after.fordblks);
	assert_int_equal(value(TRACE_LEVEL_MALLOC_TRIMMABLE), after.keepcost);
	assert_in_range(value(TRACE_LEVEL_MALLOC_FREE), 4 << 20, 16 << 20);
	for (int i = 1; i < 10000; i += 2)
		free(blocks[i]);
}

/* No function, or only functions that the owner does not define: not asked. */
static void test_of_another(void **state)
{
	owned_by_libc(false);
	assert_false(levels_malloc_due(UINT64_MAX));
	assert_int_equal(levels_malloc_read(levels, 0), 0);
}

static void test_due(void **state)
{
	uint64_t start = clock_ticks(), step = tick_clock.ticks_100ms;

	owned_by_libc(true);
	assert_true(levels_malloc_due(start));
	assert_false(levels_malloc_due(start)); /* another thread asks */
	assert_false(levels_malloc_due(start + step - 1));
	assert_true(levels_malloc_due(start + step));
	assert_int_equal(levels_malloc_read(levels, 0), LEVELS_MALLOC_MAX);
	assert_false(levels_malloc_due(clock_ticks()));
	assert_true(levels_malloc_due(clock_ticks() + 100 * step));
}

/* Asked at each eighth of growth, and after a failure all the same, but not too often. */
static void test_grown(void **state)
{
	uint64_t start = clock_ticks(), size = 1ull << 30, later;

	owned_by_libc(true);
	assert_true(levels_malloc_grown(start, size));
	assert_false(levels_malloc_grown(start, size)); /* another thread asks */
	assert_true(levels_malloc_due(start));
	assert_int_equal(levels_malloc_read(levels, size), LEVELS_MALLOC_MAX);
	assert_false(levels_malloc_grown(start, 10 * size)); /* just asked */
	later = clock_ticks() + 1000 * tick_clock.ticks_100ms;
	assert_false(levels_malloc_grown(later, size + size / 16));
	assert_true(levels_malloc_grown(later, 3 * size));
	assert_false(levels_malloc_grown(later, 3 * size));
	/* After a failure, which tells nothing about the size. */
	assert_int_equal(levels_malloc_read(levels, 0), LEVELS_MALLOC_MAX);
	assert_false(levels_malloc_grown(2 * later, size));
	owned_by_libc(false);
	assert_false(levels_malloc_grown(UINT64_MAX, UINT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_account),
	    cmocka_unit_test(test_of_another),
	    cmocka_unit_test(test_due),
	    cmocka_unit_test(test_grown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
