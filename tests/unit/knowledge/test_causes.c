/* The rows of causes.def: names and texts are there, unique, and found again. */
#include "../util/unit.h"

#include <string.h>

#include "knowledge/knowledge.h"

static void test_causes(void **state)
{
	assert_int_equal(cause_by_name("unknown"), CAUSE_UNKNOWN);
	assert_int_equal(cause_by_name("leaks"), CAUSE_UNKNOWN);
	assert_int_equal(cause_by_name(""), CAUSE_UNKNOWN);
	for (enum cause c = CAUSE_UNKNOWN + 1; c < CAUSE_COUNT; c++) {
		assert_int_equal(cause_by_name(cause_name(c)), c);
		assert_int_equal(cause_what_if(c) == NULL, c == CAUSE_HEALTHY);
	}
	(void)state;
}

static void test_facts(void **state)
{
	for (enum fact f = 0; f < FACT_COUNT; f++) {
		assert_true(strlen(fact_text(f)) > 4);
		assert_non_null(unit_name(fact_unit(f)));
	}
	assert_string_equal(unit_name(fact_unit(FACT_LEAK_SHARE)), "share");
	assert_string_equal(unit_name(fact_unit(FACT_RECOVERED)), "1");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_causes), cmocka_unit_test(test_facts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
