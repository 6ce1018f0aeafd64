/* test_file_gaps.c - gaps are found again, joined with their neighbours, each once. */
#include "../under.h"

#include "trace/file_gaps.h"

#define SLOT 65536u

static uint64_t offset;
static bool punched;

static void test_joined(void **state)
{
	file_gaps_forget();
	assert_false(file_gaps_take(&offset, SLOT, &punched));
	file_gaps_add(3 * SLOT, SLOT, true);
	file_gaps_add(5 * SLOT, SLOT, true);
	assert_false(file_gaps_take(&offset, 2 * SLOT, &punched));
	file_gaps_add(4 * SLOT, SLOT, true); /* between the two */
	assert_true(file_gaps_take(&offset, 3 * SLOT, &punched));
	assert_int_equal(offset, 3 * SLOT);
	assert_true(punched);
	assert_false(file_gaps_take(&offset, SLOT, &punched));
}

/* Punched gaps are not joined with others. */
static void test_kinds(void **state)
{
	file_gaps_forget();
	file_gaps_add(SLOT, SLOT, false);
	file_gaps_add(2 * SLOT, SLOT, true);
	assert_false(file_gaps_take(&offset, 2 * SLOT, &punched));
	assert_true(file_gaps_take(&offset, SLOT, &punched));
	assert_int_equal(punched, offset == 2 * SLOT);
}

/* The smallest sufficient gap is taken. */
static void test_best(void **state)
{
	file_gaps_forget();
	file_gaps_add(100 * SLOT, 16 * SLOT, true);
	file_gaps_add(SLOT, 2 * SLOT, true);
	assert_true(file_gaps_take(&offset, SLOT, &punched));
	assert_int_equal(offset, SLOT);
	assert_true(file_gaps_take(&offset, 16 * SLOT, &punched));
	assert_int_equal(offset, 100 * SLOT);
}

/* Gaps beyond the table's size are forgotten, not mixed up; a joined gap needs no more room. */
static void test_many(void **state)
{
	uint64_t found = 0, last = 0;

	file_gaps_forget();
	for (uint64_t i = 1; i < 2000; i += 2)
		file_gaps_add(i * SLOT, SLOT, true);
	while (file_gaps_take(&offset, SLOT, &punched)) {
		assert_true(offset % (2 * SLOT) == SLOT && offset < 2000ull * SLOT);
		assert_true(offset != last);
		last = offset;
		found++;
	}
	assert_true(found >= 64 && found < 1000);
	for (uint64_t i = 2000; i; i--)
		file_gaps_add(i * SLOT, SLOT, true);
	assert_true(file_gaps_take(&offset, 2000 * SLOT, &punched));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_joined),
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_best),
	    cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
