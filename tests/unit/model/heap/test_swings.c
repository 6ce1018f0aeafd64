/* Live bytes that swing around a level: what the swings say, and when there are none. */
#include "model/unit.h"

#include "model/heap/swings.h"

/* Live bytes after each step; a step takes a period. */
static void find(const uint64_t *live, uint32_t count, struct swings *out)
{
	uint64_t ns = 0, before = 0;
	struct timeline t;

	timeline_init(&t);
	for (uint32_t i = 0; i < count; i++, ns += 1ull << 17) {
		if (live[i] > before)
			timeline_acquire(&t, ns, before, live[i], live[i] - before);
		else
			timeline_release(&t, ns, before, live[i], before - live[i]);
		before = live[i];
	}
	swings_find(&t, (uint64_t)count << 17, out);
}

static void test_swings(void **state)
{
	static const uint64_t live[] = {300, 600, 900, 1000, 900, 1000, 1100, 1000, 900, 1000, 1200,
	    1000, 900, 1000, 1100, 1000, 900, 1000, 1100, 1000, 900, 1100, 1250};
	struct swings t;

	find(live, 23, &t);
	assert_int_equal(t.usual, 1000);
	assert_int_equal(t.highest, 1200);
	assert_int_equal(t.low, 900);
	assert_int_equal(t.low_early, 900);
	assert_in_range(t.count, 2, 4); /* the last rise is none of them */
	(void)state;
}

/* What stays lifts the lowest points; what grows lifts the tops. */
static void test_growth(void **state)
{
	uint64_t live[64];
	struct swings t;

	for (uint32_t i = 0; i < 64; i++)
		live[i] = 1000 + i * 20 + (i % 4 < 2 ? 100 : 0);
	find(live, 64, &t);
	assert_true(t.low > t.low_early + 200);
	for (uint32_t i = 0; i < 64; i++)
		live[i] = 1000 + (i % 4 < 2 ? i * 20 : 0);
	find(live, 64, &t);
	assert_true(t.late > t.early + 200);
	(void)state;
}

static void test_none(void **state)
{
	static const uint64_t few[] = {100, 200},
			      rising[] = {100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100,
				  1200},
			      still[] = {100, 100, 100, 100, 100, 100, 100, 100};
	struct swings t;

	find(few, 2, &t);
	assert_int_equal(t.count, 0);
	find(rising, 12, &t);
	assert_true(t.count <= 1);
	find(still, 8, &t);
	assert_int_equal(t.count, 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_swings),
	    cmocka_unit_test(test_growth),
	    cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
