/* Speaks when nothing ran out, and only then. */
#include "detect/scene.h"

static void test_healthy(void **state)
{
	for (int failed = 0; failed < 2; failed++) {
		struct staged t = {.s = script_new()};

		script_alloc(t.s, script_stack(t.s, "main;a"), 1000);
		stage(&t, detect_healthy, failed);
		assert_int_equal(t.rc, failed ? DETECT_SILENT : 0);
		if (!failed) {
			assert_int_equal(t.f.blame, CALLSITE_NONE);
			assert_true(t.f.evidence_count >= 3);
		}
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_healthy)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
