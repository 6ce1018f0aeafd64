/* Lines that moved, functions that were renamed, and what has no counterpart. */
#include "model/unit.h"

#include "diff/match.h"

/* A line of a function: all names are numbers here. */
static struct site line(uint64_t function, uint32_t number, uint64_t bytes, uint64_t count)
{
	return (struct site){.names = {function, 7, function * 1000 + 7},
	    .line = number,
	    .callee = 5,
	    .caller = 6,
	    .total_bytes = bytes,
	    .total_count = count,
	    .largest = count ? bytes / count : 0};
}

/* Return B's site of A's; SITE_NONE. */
static uint32_t partner(const struct pairs *p, uint32_t a)
{
	return p->list.items[p->of_a[a]].b;
}

static void test_moved(void **state)
{
	struct site a[] = {line(1, 10, 4000, 4), line(1, 12, 900, 9), line(2, 30, 50, 1)};
	/* Another function comes first; a line is new between two. */
	struct site b[] = {
	    line(2, 8, 50, 1), line(1, 40, 4000, 4), line(1, 41, 64, 64), line(1, 43, 1200, 9)};
	struct pairs p;

	assert_int_equal(match_sites(a, 3, b, 4, &p), 0);
	assert_int_equal(partner(&p, 0), 1);
	assert_int_equal(partner(&p, 1), 3);
	assert_int_equal(partner(&p, 2), 0);
	assert_int_equal(p.list.items[p.of_b[2]].a, SITE_NONE);
	assert_int_equal(p.list.count, 4);
	assert_false(p.list.items[p.of_b[3]].renamed);
	match_fini(&p);
	(void)state;
}

/* A single line stays the line, however it changed. */
static void test_changed(void **state)
{
	struct site a = line(1, 10, 4000, 4), b = line(1, 11, 9000000, 900);
	struct pairs p;

	b.callee = 99;
	assert_int_equal(match_sites(&a, 1, &b, 1, &p), 0);
	assert_int_equal(partner(&p, 0), 0);
	match_fini(&p);
	(void)state;
}

static void test_renamed(void **state)
{
	struct site a[] = {line(1, 10, 4000, 4), line(2, 20, 500, 1), line(3, 30, 7000, 7)};
	struct site b[] = {line(1, 10, 4000, 4), line(9, 20, 500, 1), line(8, 30, 70, 7)};
	struct pairs p;

	/* Function 2 is 9 now; 3 and 8 are not alike. */
	a[2].caller = b[2].caller = 77;
	assert_int_equal(match_sites(a, 3, b, 3, &p), 0);
	assert_int_equal(partner(&p, 1), 1);
	assert_true(p.list.items[p.of_a[1]].renamed);
	assert_int_equal(partner(&p, 2), SITE_NONE);
	match_fini(&p);
	/* Two candidates: neither is taken. */
	a[2] = line(3, 30, 500, 1);
	b[2] = line(8, 30, 500, 1);
	assert_int_equal(match_sites(a, 3, b, 3, &p), 0);
	assert_int_equal(partner(&p, 1), SITE_NONE);
	assert_int_equal(p.list.count, 5);
	match_fini(&p);
	(void)state;
}

static void test_file_moved(void **state)
{
	struct site a = line(1, 10, 4000, 4), b = line(1, 10, 4000, 4);
	struct pairs p;

	b.names.file = 8;
	b.names.all = 1008;
	b.caller = 66;
	assert_int_equal(match_sites(&a, 1, &b, 1, &p), 0);
	assert_int_equal(partner(&p, 0), 0);
	match_fini(&p);
	(void)state;
}

/* Nothing on a side; and more lines than are aligned. */
static void test_bounds(void **state)
{
	static struct site many[3000];
	struct pairs p;

	assert_int_equal(match_sites(NULL, 0, NULL, 0, &p), 0);
	assert_int_equal(p.list.count, 0);
	match_fini(&p);
	for (uint32_t i = 0; i < 3000; i++)
		many[i] = line(1, i + 1, i, 1);
	assert_int_equal(match_sites(many, 3000, NULL, 0, &p), 0);
	assert_int_equal(p.list.count, 3000);
	match_fini(&p);
	assert_int_equal(match_sites(many, 3000, many, 3000, &p), 0);
	assert_int_equal(p.list.count, 3000);
	assert_int_equal(partner(&p, 2999), 2999);
	match_fini(&p);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_moved),
	    cmocka_unit_test(test_changed),
	    cmocka_unit_test(test_renamed),
	    cmocka_unit_test(test_file_moved),
	    cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
