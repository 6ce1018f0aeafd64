#include "unit.h"
#include "util/vec.h"

static void grows_and_keeps(void **state)
{
	VEC(uint32_t) v = {0};

	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(vec_push(&v, i * 3), 0);
	assert_int_equal(v.count, 10000);
	for (uint32_t i = 0; i < 10000; i++)
		assert_int_equal(v.items[i], i * 3);
	assert_int_equal(vec_reserve(&v, 20000), 0);
	assert_true(v.capacity >= 20000);
	assert_int_equal(v.count, 10000);
	vec_free(&v);
	assert_null(v.items);
}

static void reaches_with_zeros(void **state)
{
	VEC(uint32_t) v = {0};

	assert_int_equal(vec_push(&v, 7), 0);
	assert_int_equal(vec_reach(&v, 1000), 0);
	assert_int_equal(v.count, 1000);
	assert_int_equal(v.items[0], 7);
	for (uint32_t i = 1; i < 1000; i++)
		assert_int_equal(v.items[i], 0);
	assert_int_equal(vec_reach(&v, 3), 0);
	assert_int_equal(v.count, 1000);
	vec_free(&v);
}

static void refuses_what_cannot_be(void **state)
{
	VEC(uint64_t) v = {0};

	assert_int_equal(vec_push(&v, 7), 0);
	assert_int_equal(vec_reserve(&v, SIZE_MAX), -ENOMEM);
	assert_int_equal(vec_reserve(&v, PTRDIFF_MAX / 8 + 1), -ENOMEM);
	assert_int_equal(vec_reach(&v, PTRDIFF_MAX / 8 + 1), -ENOMEM);
	assert_int_equal(v.count, 1);
	assert_int_equal(v.items[0], 7);
	vec_free(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(grows_and_keeps),
	    cmocka_unit_test(reaches_with_zeros),
	    cmocka_unit_test(refuses_what_cannot_be),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
