/* test_before.c - blocks from before are told from later ones, and counted once. */
#include "../under.h"

#include <malloc.h>
#include <stdlib.h>

#include "base/shim_state.h"
#include "levels/before.h"
#include "loaded/symbols.h"
#include "whyoom/trace.h"

static uint64_t bytes, blocks;

static void read_levels(void)
{
	struct level levels[BEFORE_LEVELS_MAX];

	assert_int_equal(before_levels(levels), 2);
	assert_int_equal(levels[0].key, TRACE_LEVEL_BEFORE_FREED);
	assert_int_equal(levels[1].key, TRACE_LEVEL_BEFORE_FREED_BLOCKS);
	bytes = levels[0].value;
	blocks = levels[1].value;
}

static void test_begin(void **state)
{
	struct level levels[BEFORE_LEVELS_MAX];

	assert_int_equal(before_levels(levels), 0); /* no attach */
	symbols_all();
	shim.owner_is_libc = true;
	before_begin();
	read_levels();
	assert_int_equal(bytes + blocks, 0);
}

static void test_told_apart(void **state)
{
	void *old = calloc(1, 1000), *later = calloc(1, 2000);

	before_acquired(later);
	assert_false(before_released(later, false));
	read_levels();
	assert_int_equal(blocks, 0);
	assert_true(before_released(old, false));
	read_levels();
	assert_int_equal(blocks, 1);
	assert_int_equal(bytes, malloc_usable_size(old));
	/* the address of a released block is as unknown as any other */
	assert_true(before_released(later, true));
	read_levels();
	assert_int_equal(blocks, 2);
	assert_int_equal(bytes, malloc_usable_size(old));
	free(old);
	free(later);
}

/* A refused realloc: the block lives on, as what it was. */
static void test_did_not_happen(void **state)
{
	void *old = calloc(1, 1000), *later = calloc(1, 2000);
	uint64_t bytes_then, blocks_then;

	read_levels();
	bytes_then = bytes;
	blocks_then = blocks;
	assert_true(before_released(old, false));
	assert_true(before_unreleased(old));
	read_levels();
	assert_int_equal(bytes, bytes_then);
	assert_int_equal(blocks, blocks_then);
	before_acquired(later);
	assert_false(before_released(later, false));
	assert_false(before_unreleased(later));
	assert_false(before_released(later, false));
	free(old);
	free(later);
}

/* Neighbours, and places far apart, do not share a bit. */
static void test_places(void **state)
{
	static const uintptr_t at[] = {
	    16, 32, 1 << 20, 1 << 26, (1 << 26) + 16, 0x7ffffffff000, 0xfffffffffff0};

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		assert_true(before_released((void *)at[i], true));
		before_acquired((void *)at[i]);
	}
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		assert_false(before_released((void *)at[i], true));
	before_acquired((void *)at[0]);
	before_begin();
	assert_true(before_released((void *)at[0], true));
}

static void test_forked(void **state)
{
	struct level levels[BEFORE_LEVELS_MAX];

	before_forked();
	assert_int_equal(before_levels(levels), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_begin),
	    cmocka_unit_test(test_told_apart),
	    cmocka_unit_test(test_did_not_happen),
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_forked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
