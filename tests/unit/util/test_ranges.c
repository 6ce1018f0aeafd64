/* Ranges against a map of pages: both agree after any cut and addition. */
#include <string.h>

#include "unit.h"

#include "../dice.h"
#include "util/ranges.h"

#define PAGES 400u

static uint64_t page_of[PAGES]; /* serial of the mapping there, 0: none */
static uint64_t removed;

static void on_cut(void *arg, const struct range *piece, int whole, int split)
{
	assert_true(piece->start < piece->end);
	for (uint64_t p = piece->start; p < piece->end; p++) {
		assert_int_equal(page_of[p], piece->serial);
		page_of[p] = 0;
		removed++;
	}
	assert_false(whole && split);
	(void)arg;
}

static void on_range(void *arg, const struct range *r)
{
	uint64_t *seen = arg;

	for (uint64_t p = r->start; p < r->end; p++)
		assert_int_equal(page_of[p], r->serial);
	*seen += r->end - r->start;
}

static void test_random(void **state)
{
	struct ranges r;
	uint64_t seed = 99, serial = 0;

	ranges_init(&r);
	for (int i = 0; i < 20000; i++) {
		uint64_t start = dice(&seed, PAGES), end = start + 1 + dice(&seed, 60), expect = 0,
			 seen = 0;

		if (end > PAGES)
			end = PAGES;
		for (uint64_t p = start; p < end; p++)
			expect += page_of[p] != 0;
		removed = 0;
		assert_int_equal(ranges_cut(&r, start, end, on_cut, NULL), 0);
		assert_int_equal(removed, expect);
		if (dice(&seed, 3)) {
			struct range add = {.start = start, .end = end, .serial = ++serial};
			assert_int_equal(ranges_add(&r, &add), 0);
			for (uint64_t p = start; p < end; p++)
				page_of[p] = serial;
		}
		expect = 0;
		for (uint64_t p = 0; p < PAGES; p++)
			expect += page_of[p] != 0;
		ranges_each(&r, on_range, &seen);
		assert_int_equal(seen, expect);
	}
	ranges_fini(&r);
	(void)state;
}

/* Addresses in order, by the hundred thousand: no list, no deep recursion. */
static void test_many(void **state)
{
	struct ranges r;
	uint64_t seen = 0;

	memset(page_of, 0, sizeof(page_of));
	ranges_init(&r);
	for (uint64_t i = 0; i < 300000; i++) {
		struct range add = {.start = i * 2 + 1000, .end = i * 2 + 1001, .serial = i};
		assert_int_equal(ranges_add(&r, &add), 0);
	}
	assert_int_equal(r.count, 300000);
	(void)seen;
	ranges_fini(&r);
	assert_int_equal(r.count, 0);
	(void)state;
}

static void test_empty(void **state)
{
	struct ranges r;
	struct range none = {.start = 5, .end = 5};

	ranges_init(&r);
	assert_int_equal(ranges_add(&r, &none), 0);
	assert_int_equal(r.count, 0);
	assert_int_equal(ranges_cut(&r, 9, 3, on_cut, NULL), 0);
	ranges_fini(&r);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
