/* Each cause has a detector of its own; "unknown" has none. */
#include "model/unit.h"

#include "detect/detect.h"

static void test_each_cause(void **state)
{
	assert_null(detectors[CAUSE_UNKNOWN]);
	for (enum cause c = CAUSE_UNKNOWN + 1; c < CAUSE_COUNT; c++) {
		assert_non_null(detectors[c]);
		for (enum cause other = CAUSE_UNKNOWN; other < c; other++)
			assert_ptr_not_equal(detectors[other], detectors[c]);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_cause)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
