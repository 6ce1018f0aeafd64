/* test_levels_python.c - an interpreter's arenas are divided into used, free and never handed
 * out; memory that is no arena, or no longer one, does no harm. */
#include "../under.h"

#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "levels/levels_python.h"

#define ARENA (1u << 20)
#define POOL 16384u
#define CODE 0x4000u /* where the interpreter's code lies */
#define HEADER 48u

static struct level levels[LEVELS_PYTHON_MAX];
static unsigned count;

static uint64_t value(uint32_t key)
{
	for (unsigned i = 0; i < count; i++)
		if (levels[i].key == key)
			return levels[i].value;
	return UINT64_MAX;
}

static void ask(void)
{
	count = levels_python_read(levels);
}

static uint8_t *map(size_t bytes)
{
	uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static uint8_t *first_pool(uint8_t *arena)
{
	return (uint8_t *)(((uintptr_t)arena + POOL - 1) & ~(uintptr_t)(POOL - 1));
}

/* As obmalloc writes it: `used` blocks of the class, everything up to `fresh` handed out once. */
static void set_pool(uint8_t *arena, unsigned n, uint32_t used, uint32_t class, uint32_t fresh)
{
	uint8_t *p = first_pool(arena) + (size_t)n * POOL;

	memcpy(p, &used, 4);
	memcpy(p + 36, &class, 4);
	memcpy(p + 40, &fresh, 4);
}

static void test_account(void **state)
{
	uint8_t *arena = map(ARENA);

	clock_init();
	levels_python_found(11, CODE, CODE + 0x1000);
	levels_python_mapped((uintptr_t)arena, ARENA, CODE - 1); /* other code's */
	levels_python_mapped((uintptr_t)arena, ARENA / 2, CODE);
	ask();
	assert_int_equal(count, 0);
	levels_python_mapped((uintptr_t)arena, ARENA, CODE);
	set_pool(arena, 0, 10, 3, POOL); /* blocks of 64 bytes */
	set_pool(arena, 1, 1, 31, HEADER + 2 * 512);
	set_pool(arena, 2, 0, 31, POOL); /* all freed */
	set_pool(arena, 3, 0, 0xffff, 0); /* taken from the arena only */
	ask();
	assert_int_equal(count, LEVELS_PYTHON_MAX);
	assert_int_equal(value(TRACE_LEVEL_PYTHON_ARENAS), ARENA);
	assert_int_equal(value(TRACE_LEVEL_PYTHON_USED), 10 * 64 + 512 + 3 * HEADER);
	assert_int_equal(value(TRACE_LEVEL_PYTHON_FREE), 2 * (POOL - HEADER) - 10 * 64 + 512);
	levels_python_unmapped((uintptr_t)arena, ARENA);
	ask();
	assert_int_equal(count, 0);
	munmap(arena, ARENA);
}

/* More arenas than are read: the chosen ones represent all. Unmapped arenas leave the table. */
static void test_many(void **state)
{
	enum { MANY = 4500, STRIDE = ARENA };
	uint8_t *all = map((size_t)MANY * STRIDE);

	all = first_pool(all);
	for (unsigned i = 0; i < MANY - 1; i++) {
		for (unsigned n = 0; n < 64; n += 32)
			set_pool(all + (size_t)i * STRIDE, n + i % 32, 15, 31, POOL);
		levels_python_mapped((uintptr_t)all + (size_t)i * STRIDE, ARENA, CODE);
	}
	ask();
	assert_int_equal(value(TRACE_LEVEL_PYTHON_ARENAS), (MANY - 1ull) * ARENA);
	/* one pool in 32, a good half of it used */
	assert_in_range(
	    value(TRACE_LEVEL_PYTHON_USED) >> 20, MANY / 64 * 6 / 10, MANY / 64 * 14 / 10);
	for (unsigned i = 100; i < MANY - 1; i++)
		levels_python_unmapped((uintptr_t)all + (size_t)i * STRIDE, ARENA);
	ask();
	assert_int_equal(value(TRACE_LEVEL_PYTHON_ARENAS), 100ull * ARENA);
	for (unsigned i = 0; i < 100; i++)
		levels_python_unmapped((uintptr_t)all + (size_t)i * STRIDE, ARENA);
	ask();
	assert_int_equal(count, 0);
}

/* Unmapped unseen, unreadable, or full of other data. */
static void test_harm(void **state)
{
	uint8_t *gone = map(ARENA), *closed = map(ARENA), *arena = map(ARENA);

	levels_python_mapped((uintptr_t)gone, ARENA, CODE);
	levels_python_mapped((uintptr_t)closed, ARENA, CODE);
	munmap(gone, ARENA);
	mprotect(closed, ARENA, PROT_NONE);
	ask();
	assert_int_equal(count, 0);
	levels_python_mapped((uintptr_t)arena, ARENA, CODE);
	set_pool(arena, 0, 100, 31, POOL); /* more than fit */
	ask();
	assert_int_equal(count, LEVELS_PYTHON_MAX); /* torn, like a pool that is changing */
	memset(arena, 0x41, ARENA);
	ask();
	assert_int_equal(count, 0);
	levels_python_unmapped((uintptr_t)gone, ARENA);
	levels_python_unmapped((uintptr_t)closed, ARENA);
	levels_python_unmapped((uintptr_t)arena, ARENA);
}

static void test_due(void **state)
{
	uint64_t now = clock_ticks(), step = tick_clock.ticks_100ms, rss = 100u << 20;
	uint8_t *arena = map(ARENA);

	levels_python_init();
	assert_false(levels_python_due(now, rss)); /* no arenas */
	levels_python_mapped((uintptr_t)arena, ARENA, CODE);
	assert_true(levels_python_due(now, rss));
	assert_false(levels_python_due(now, 2 * rss)); /* another thread asks */
	assert_true(levels_python_due(now, 0)); /* a failure */
	assert_false(levels_python_due(now, 0));
	assert_false(levels_python_due(now + step, rss + rss / 16));
	assert_true(levels_python_due(now + step, rss + rss / 4));
	levels_python_unmapped((uintptr_t)arena, ARENA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_account),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_harm),
	    cmocka_unit_test(test_due),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
