#include <string.h>

#include "unit.h"
#include "util/arena.h"

static void pieces_do_not_overlap(void **state)
{
	struct arena arena = {0};
	char *pieces[2000];

	for (size_t i = 0; i < 2000; i++) {
		size_t bytes = i * 37 % 500 + 1;
		pieces[i] = arena_alloc(&arena, bytes);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 8, 0);
		for (size_t k = 0; k < bytes; k++)
			assert_int_equal(pieces[i][k], 0);
		memset(pieces[i], (int)(i % 251), bytes);
	}
	for (size_t i = 0; i < 2000; i++)
		for (size_t k = 0; k < i * 37 % 500 + 1; k++)
			assert_int_equal((unsigned char)pieces[i][k], i % 251);
	arena_free(&arena);
	assert_int_equal(arena.bytes, 0);
}

static void large_pieces_waste_nothing(void **state)
{
	struct arena arena = {0};
	char *small = arena_alloc(&arena, 8), *large = arena_alloc(&arena, 1000000), *next;

	assert_non_null(large);
	memset(large, 1, 1000000);
	next = arena_alloc(&arena, 8);
	assert_ptr_equal(next, small + 8);
	assert_true(arena.bytes < 1000000 + 70000);
	assert_null(arena_alloc(&arena, SIZE_MAX - 3));
	arena_free(&arena);
}

static void copies_end_with_nul(void **state)
{
	struct arena arena = {0};
	char *copy = arena_copy(&arena, "a\0b", 3);

	assert_memory_equal(copy, "a\0b", 4);
	assert_string_equal(arena_copy(&arena, NULL, 0), "");
	assert_null(arena_copy(&arena, "x", SIZE_MAX));
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pieces_do_not_overlap),
	    cmocka_unit_test(large_pieces_waste_nothing),
	    cmocka_unit_test(copies_end_with_nul),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
