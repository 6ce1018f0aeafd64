/* Requests make teeth; a start's small ones, and a rise without a fall, are none. */
#include "model/unit.h"

#include "model/heap/teeth.h"

/* Live bytes after each step; a step takes a period. */
static void draw(struct timeline *t, const uint64_t *live, uint32_t count)
{
	uint64_t ns = 0, before = 0;

	timeline_init(t);
	for (uint32_t i = 0; i < count; i++, ns += 1ull << 17) {
		if (live[i] > before)
			timeline_acquire(t, ns, before, live[i], live[i] - before);
		else
			timeline_release(t, ns, before, live[i], before - live[i]);
		before = live[i];
	}
}

static void find(const uint64_t *live, uint32_t count, struct teeth *out)
{
	struct timeline t;

	draw(&t, live, count);
	teeth_find(&t, (uint64_t)count << 17, out);
}

static void test_heights(void **state)
{
	static const uint64_t live[] = {1000, 2000, 1000, 2500, 1100, 2100, 1000, 4000};
	struct teeth t;

	find(live, 8, &t);
	assert_int_equal(t.count, 2); /* the first one rose from nothing */
	assert_int_equal(t.highest, 1500);
	assert_int_equal(t.median, 1500);
	assert_int_equal(t.last, 1000); /* and rises to 4000 since */
	assert_int_equal(t.middle, 1000);
	(void)state;
}

static void test_growth(void **state)
{
	uint64_t live[64];
	struct teeth t;

	/* What stays rises from tooth to tooth, and the teeth do not. */
	for (uint32_t i = 0; i < 64; i++)
		live[i] = 10000 + i * 100 + (i % 2 ? 3000 : 0);
	find(live, 64, &t);
	assert_true(t.count >= 30);
	assert_true(t.last > t.middle + 2000);
	assert_in_range(t.late, t.early - 200, t.early + 200);
	/* The teeth grow. */
	for (uint32_t i = 0; i < 64; i++)
		live[i] = 10000 + (i % 2 ? i * 200 : 0);
	find(live, 64, &t);
	assert_true(t.late > 2 * t.early);
	/* No fall, no tooth; nor is a fall of little. */
	for (uint32_t i = 0; i < 64; i++)
		live[i] = 100000 + i * 1000 - (i % 2 ? 2000 : 0);
	find(live, 64, &t);
	assert_int_equal(t.count, 0);
	(void)state;
}

static void test_start(void **state)
{
	uint64_t live[64];
	struct teeth t;

	for (uint32_t i = 0; i < 64; i++)
		live[i] = i < 32 ? 100 + (i % 2 ? 20 : 0) : 1000 + (i % 2 ? 500 : 0);
	find(live, 64, &t);
	assert_in_range(t.count, 14, 17);
	assert_int_equal(t.early, t.late);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_heights),
	    cmocka_unit_test(test_growth), cmocka_unit_test(test_start)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
