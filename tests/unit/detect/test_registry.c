/* Every detector fills the form, and its name is a cause. */
#include "model/unit.h"

#include "detect/registry.h"

static void test_form(void **state)
{
	size_t n = 0;

	for (; detectors[n]; n++) {
		assert_non_null(detectors[n]->name);
		assert_true(strlen(detectors[n]->claim) > 10);
		assert_non_null(detectors[n]->judge);
		for (size_t k = 0; k < n; k++)
			assert_string_not_equal(detectors[k]->name, detectors[n]->name);
	}
	assert_true(n >= 4);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_form)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
