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

static void test_stacks(void **state)
{
	static struct levels l;
	uint64_t value;

	levels_carry_stacks(&l, 5, 0);
	assert_false(levels_get(&l, TRACE_LEVEL_VIRT_THREADS, &value));
	levels_set(&l, TRACE_LEVEL_THREADS, 3, 1);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 16 * MiB, 1);
	levels_carry_stacks(&l, 10, 0);
	assert_true(levels_get(&l, TRACE_LEVEL_VIRT_THREADS, &value));
	assert_int_equal(value, 72 * MiB);
	levels_set(&l, TRACE_LEVEL_THREADS, 10, 2);
	levels_carry_stacks(&l, 8, 0); /* no fewer than these need */
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 56 * MiB);
	l.value[TRACE_LEVEL_VIRT_THREADS] = 72 * MiB;
	levels_carry_stacks(&l, 1, 0); /* the others ended; some of their stacks remain */
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 40 * MiB);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 16 * MiB, 2);
	levels_carry_stacks(&l, 1, 0);
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 16 * MiB);
	levels_set(&l, TRACE_LEVEL_THREADS, 1, 3);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 7, 3);
	levels_carry_stacks(&l, 4, 0); /* one thread tells nothing of others */
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 7);
	/* Four of known size, with a guard each; ended threads left three of them. */
	levels_set(&l, TRACE_LEVEL_THREADS, 2, 4);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 4 * (8 * MiB + 4096), 4);
	levels_carry_stacks(&l, 31, 8 * MiB);
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 30 * (8 * MiB + 4096));
	/* All of them are left over, and no thread lives. */
	levels_set(&l, TRACE_LEVEL_THREADS, 1, 5);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 4 * (8 * MiB + 4096), 5);
	levels_carry_stacks(&l, 31, 8 * MiB);
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 30 * (8 * MiB + 4096));
	/* Of another size: the average. */
	levels_set(&l, TRACE_LEVEL_THREADS, 3, 6);
	levels_set(&l, TRACE_LEVEL_VIRT_THREADS, 2 * MiB, 6);
	levels_carry_stacks(&l, 11, 8 * MiB);
	assert_int_equal(l.value[TRACE_LEVEL_VIRT_THREADS], 10 * MiB);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_levels), cmocka_unit_test(test_stacks)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
