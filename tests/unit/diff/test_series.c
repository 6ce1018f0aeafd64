/* Sums, falls and parts of a line's history. */
#include "model/unit.h"

#include "diff/series.h"

static struct arena arena;

static void acquire(struct series *s, uint32_t part, uint64_t size)
{
	assert_int_equal(series_acquire(s, &arena, part, part % 3, ALIKE_ONE(size)), 0);
}

static void test_sums(void **state)
{
	struct series s = {0};

	acquire(&s, 0, 16 * KiB);
	acquire(&s, 1, 64 * KiB);
	series_release(&s, 1, ALIKE_ONE(16 * KiB));
	series_mark(&s);
	series_release(&s, 5, ALIKE_ONE(64 * KiB));
	acquire(&s, 30, 8 * KiB);
	series_finish(&s);
	assert_int_equal(s.then.live, 64 * KiB);
	assert_int_equal(s.then.fall, 16 * KiB);
	assert_int_equal(s.then.total_count, 2);
	assert_int_equal(s.now.live, 8 * KiB);
	assert_int_equal(s.now.high, 80 * KiB);
	assert_int_equal(s.now.fall, 80 * KiB);
	assert_int_equal(s.largest, 64 * KiB);
	assert_int_equal(s.early_count, 2);
	assert_int_equal(series_threads(&s), 2);
	assert_int_equal(s.parts->top[0], 16 * KiB);
	assert_int_equal(s.parts->top[1], 80 * KiB);
	assert_int_equal(s.parts->low[1], 16 * KiB);
	assert_int_equal(s.parts->top[3], 64 * KiB);
	assert_int_equal(s.parts->low[5], 0);
	assert_int_equal(s.parts->top[6], 0);
	assert_int_equal(s.parts->top[SERIES_PARTS - 1], 8 * KiB);
	(void)state;
}

/* The end releases all, and is no fall; parts beyond the last are the last. */
static void test_end(void **state)
{
	struct series s = {0};

	acquire(&s, 2, 32 * KiB);
	series_release(&s, 4000000000u, ALIKE_ONE(32 * KiB));
	series_finish(&s);
	assert_int_equal(s.now.live, 0);
	assert_int_equal(s.now.fall, 0);
	assert_int_equal(s.parts->low[SERIES_PARTS - 1], 0);
	assert_int_equal(s.parts->low[SERIES_PARTS - 2], 32 * KiB);
	(void)state;
}

/* A small line takes no memory for its history. */
static void test_small(void **state)
{
	struct series s = {0};

	for (uint32_t part = 0; part < SERIES_PARTS; part++) {
		acquire(&s, part, SERIES_LEAST - 1);
		series_release(&s, part, ALIKE_ONE(SERIES_LEAST - 1));
	}
	series_finish(&s);
	assert_null(s.parts);
	assert_int_equal(s.now.total_count, SERIES_PARTS);
	/* More is released than was seen, as in a damaged trace. */
	series_release(&s, 0, ALIKE_ONE(5));
	assert_int_equal(s.now.live, 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sums),
	    cmocka_unit_test(test_end),
	    cmocka_unit_test(test_small),
	};
	int rc = cmocka_run_group_tests(tests, NULL, NULL);

	arena_free(&arena);
	return rc;
}
