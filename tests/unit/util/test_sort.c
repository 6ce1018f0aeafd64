#include <stdlib.h>

#include "unit.h"
#include "util/sort.h"

static uint64_t seed = 1;

static uint64_t number(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed ^ seed >> 29;
}

/* Sorted, and the same items: each value tells the item's key. */
static void check(struct sort_item *items, uint64_t *keys, size_t count)
{
	uint64_t before = 0, after = 0;

	for (size_t i = 0; i < count; i++) {
		items[i] = (struct sort_item){keys[i], &keys[i]};
		before += keys[i] * 31 + 1;
	}
	sort_items(items, count);
	for (size_t i = 0; i < count; i++) {
		assert_true(!i || items[i - 1].key <= items[i].key);
		assert_int_equal(items[i].key, *(const uint64_t *)items[i].value);
		after += items[i].key * 31 + 1;
	}
	assert_int_equal(before, after);
}

static void sorts(void **state)
{
	static const uint64_t masks[] = {
	    UINT64_MAX, 0xfff0, 0xff000000000000ff, 0x7f0003fffff0, 1, 0};
	static const size_t counts[] = {0, 1, 2, 31, 32, 33, 1000, 20000};
	uint64_t *keys = malloc(20000 * sizeof(*keys));
	struct sort_item *items = malloc(20000 * sizeof(*items));

	assert_non_null(keys);
	assert_non_null(items);
	for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			for (size_t i = 0; i < counts[c]; i++)
				keys[i] = number() & masks[m];
			check(items, keys, counts[c]);
		}
	}
	/* In order already, and the other way round. */
	for (size_t i = 0; i < 20000; i++)
		keys[i] = i << 5;
	check(items, keys, 20000);
	for (size_t i = 0; i < 20000; i++)
		keys[i] = ~(i << 5);
	check(items, keys, 20000);
	free(keys);
	free(items);
}

static void counts_up_to_a_key(void **state)
{
	static const struct sort_item items[] = {{3, 0}, {5, 0}, {5, 0}, {UINT64_MAX, 0}};
	static const struct {
		uint64_t key;
		size_t count;
	} cases[] = {{0, 0}, {2, 0}, {3, 1}, {4, 1}, {5, 3}, {UINT64_MAX - 1, 3}, {UINT64_MAX, 4}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(
		    sort_up_to(items, 4, sizeof(*items), cases[i].key), cases[i].count);
	assert_int_equal(sort_up_to(NULL, 0, sizeof(*items), 7), 0);
}

static void finds_a_median(void **state)
{
	uint64_t odd[] = {9, 1, UINT64_MAX}, even[] = {4, 1, 3, 2};

	(void)state;
	assert_int_equal(sort_median(odd, 3), 9);
	assert_int_equal(sort_median(even, 4), 3);
	assert_int_equal(sort_median(even, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(counts_up_to_a_key),
	    cmocka_unit_test(sorts), cmocka_unit_test(finds_a_median)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
