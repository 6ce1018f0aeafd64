/* Any numbers are read back unchanged, or no list is made. */
#include "util/consecutive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT 200000u

/* Each of `every` numbers begins anew, at positions that do not repeat. */
static uint32_t *numbers_of(uint32_t every)
{
	uint32_t *n = malloc(COUNT * sizeof(*n)), seed = 7;

	assert_non_null(n);
	n[0] = 0;
	for (uint32_t i = 1; i < COUNT; i++) {
		seed = seed * 1664525u + 1013904223u;
		n[i] = seed >> 8 < (1u << 24) / every ? seed : n[i - 1] + 1;
	}
	return n;
}

/* Makes the list, reads all of it, and frees both. */
static void check(uint32_t *n)
{
	struct consecutive c;

	assert_int_equal(consecutive_init(&c, n, COUNT), 1);
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(consecutive_at(&c, i), n[i]);
	consecutive_fini(&c);
	free(n);
}

static void read_as_they_were(void **state)
{
	static const uint32_t every[] = {COUNT * 2, 5000, 200};

	for (size_t k = 0; k < sizeof(every) / sizeof(*every); k++)
		check(numbers_of(every[k]));
	(void)state;
}

static void no_gain(void **state)
{
	uint32_t *n = numbers_of(10), few[] = {1, 2, 3};
	struct consecutive c;

	assert_int_equal(consecutive_init(&c, n, COUNT), 0);
	assert_int_equal(consecutive_init(&c, few, 3), 0);
	assert_int_equal(consecutive_init(&c, few, 0), 0);
	assert_null(c.pieces);
	free(n);
	(void)state;
}

/* A stride's last number and the next one's first begin a piece; one stride goes through zero. */
static void edges(void **state)
{
	uint32_t *n = malloc(COUNT * sizeof(*n));

	assert_non_null(n);
	for (uint32_t i = 0; i < COUNT; i++)
		n[i] = UINT32_MAX - 50 + i;
	n[CONSECUTIVE_STRIDE - 1] = 9;
	n[CONSECUTIVE_STRIDE] = 9;
	check(n);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(read_as_they_were),
	    cmocka_unit_test(no_gain),
	    cmocka_unit_test(edges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
