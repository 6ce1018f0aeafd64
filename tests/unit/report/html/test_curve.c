/* A curve's buckets. */
#include "model/unit.h"

#include "report/html/curve.h"

static void test_buckets(void **state)
{
	struct curve c;

	assert_int_equal(curve_init(&c, 0, 1000, 10), 0);
	curve_change(&c, 10, 0, 0, 100);
	curve_change(&c, 20, 1, 1, 50);
	curve_change(&c, 30, 0, 0, -100);
	curve_change(&c, 450, 2, 2, 7);
	curve_change(&c, 999, 40, 40, 3); /* beyond the groups: the rest */
	curve_end(&c);
	assert_int_equal(c.least[0], 0);
	assert_int_equal(c.most[0], 150);
	assert_int_equal(c.last[0], 50);
	/* What lives is carried through buckets in which nothing happens. */
	for (unsigned i = 1; i < 4; i++) {
		assert_int_equal(c.least[i], 50);
		assert_int_equal(c.most[i], 50);
		assert_int_equal(c.groups[i * CURVE_GROUPS + 1], 50);
	}
	assert_int_equal(c.least[4], 50);
	assert_int_equal(c.last[4], 57);
	assert_int_equal(c.last[9], 60);
	assert_int_equal(c.groups[9 * CURVE_GROUPS + CURVE_SITES - 1], 3);
	assert_int_equal(c.groups[9 * CURVE_GROUPS + CURVE_GROUPS - 1], 3);
	assert_int_equal(c.groups[9 * CURVE_GROUPS + CURVE_SITES + 2], 7);
	curve_fini(&c);
}

static void test_stretch(void **state)
{
	struct curve c;

	/* What happened before is where it begins; what happens at its end is not its own. */
	assert_int_equal(curve_init(&c, 500, 600, 4), 0);
	curve_change(&c, 1, 0, 0, 1000);
	curve_change(&c, 2, 0, 0, -900);
	curve_change(&c, 560, 0, 0, 1);
	curve_change(&c, 600, 0, 0, 77);
	curve_end(&c);
	assert_int_equal(c.least[0], 100);
	assert_int_equal(c.most[0], 100);
	assert_int_equal(c.last[1], 100);
	assert_int_equal(c.last[2], 101);
	assert_int_equal(c.last[3], 101);
	curve_fini(&c);
}

static void test_damage(void **state)
{
	struct curve c;

	/* More is released than was acquired, and time goes back. */
	assert_int_equal(curve_init(&c, 0, 100, 2), 0);
	curve_change(&c, 80, 0, 0, 5);
	curve_change(&c, 10, 0, 0, -9);
	curve_end(&c);
	assert_int_equal(c.last[1], 0);
	curve_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_buckets),
	    cmocka_unit_test(test_stretch),
	    cmocka_unit_test(test_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
