/* test_bootstrap_arena.c - the arena: alignment, its end, and which blocks it owns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bootstrap_arena.h"

static void test_blocks(void **state)
{
	uint8_t *a = bootstrap_alloc(1, 16), *b = bootstrap_alloc(100, 4096),
		*c = bootstrap_alloc(0, 16);

	assert_true(a && b && c && a != b && b != c);
	assert_int_equal((uintptr_t)a % 16, 0);
	assert_int_equal((uintptr_t)b % 4096, 0);
	assert_true(b >= a + 1 && c >= b + 100);
	assert_int_equal(bootstrap_size(a), 1);
	assert_int_equal(bootstrap_size(b), 100);
	assert_true(bootstrap_owns(a) && bootstrap_owns(c));
	assert_false(bootstrap_owns(&a));
	assert_false(bootstrap_owns(NULL));
	memset(b, 0xff, 100);
	assert_int_equal(bootstrap_size(c), 0);
}

static void test_full(void **state)
{
	size_t taken = 0;
	uint8_t *p;

	assert_null(bootstrap_alloc(BOOTSTRAP_BYTES, 16));
	assert_null(bootstrap_alloc(SIZE_MAX, 16));
	while ((p = bootstrap_alloc(1000, 16))) {
		assert_true(bootstrap_owns(p) && bootstrap_owns(p + 999));
		taken++;
	}
	assert_in_range(taken, 40, 65);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_blocks),
	    cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
