/* The newest value of each key; keys of a newer version are left alone. */
#include "model/unit.h"

#include "model/model.h"

static void test_levels(void **state)
{
	static struct levels l;
	uint64_t value = 42;

	assert_false(levels_get(&l, TRACE_LEVEL_RSS, &value));
	assert_int_equal(value, 42);
	levels_set(&l, TRACE_LEVEL_RSS, 0, 5); /* nothing resident is a value */
	assert_true(levels_get(&l, TRACE_LEVEL_RSS, &value));
	assert_int_equal(value, 0);
	levels_set(&l, TRACE_LEVEL_RSS, 7, 6);
	assert_int_equal(l.time_ns[TRACE_LEVEL_RSS], 6);
	levels_set(&l, MODEL_LEVELS, 1, 1);
	levels_set(&l, UINT32_MAX, 1, 1);
	assert_false(levels_get(&l, UINT32_MAX, &value));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
