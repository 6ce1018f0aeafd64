/* Speaks where others hold a good part, and less where the request is larger than any before. */
#include "detect/scene.h"

static void ask(struct staged *t, uint64_t request, uint64_t others)
{
	uint32_t work = script_stack(t->s, "main;work");

	script_alloc(t->s, script_stack(t->s, "main;load"), 1000000);
	for (int i = 0; i < 100; i++)
		script_release(t->s, script_alloc(t->s, work, 50000));
	script_failed(t->s, work, request);
	t->scene.others = (struct scene_others){.known = true, .bytes = others};
	stage(t, &detect_external, true);
}

static void test_others(void **state)
{
	struct staged t = {.s = script_new()};

	ask(&t, 50000, 3000000);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength == 1);
	assert_int_equal(t.f.other_bytes, 3000000);
	assert_int_equal(t.f.blame, PLACE_NONE);
	strike(&t);
	(void)state;
}

static void test_larger_than_before(void **state)
{
	struct staged t = {.s = script_new()};

	ask(&t, 500000, 3000000);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength <= 0.5);
	strike(&t);
	(void)state;
}

static void test_silent(void **state)
{
	struct staged none = {.s = script_new()}, few = {.s = script_new()};

	ask(&none, 50000, 0);
	assert_int_equal(none.rc, DETECT_SILENT);
	strike(&none);
	ask(&few, 50000, 50000);
	assert_int_equal(few.rc, DETECT_SILENT);
	strike(&few);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_others),
	    cmocka_unit_test(test_larger_than_before), cmocka_unit_test(test_silent)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
