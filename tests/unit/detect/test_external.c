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

/* A steady server whose allocator is told to be content with less (kept -1: it is not). */
static void lower(struct staged *t, uint64_t request, uint64_t limit, int kept)
{
	uint32_t work = script_stack(t->s, "main;work"), keep = script_stack(t->s, "main;keep");

	script_alloc(t->s, script_stack(t->s, "main;load"), 1000000);
	for (int i = 0; i < 200; i++) {
		script_release(t->s, script_alloc(t->s, work, 500000 + i % 3 * 1000));
		if (kept > 0)
			script_alloc(t->s, keep, (uint64_t)kept);
	}
	script_failed(t->s, work, request);
	t->scene.space = "torch:0";
	t->scene.limit_bytes = limit;
	t->scene.usage_bytes = 1000000;
	t->scene.own_limit = (struct scene_own_limit){.known = kept >= 0, .kept_back = 4000000};
	stage(t, &detect_external, true);
}

static void test_limit(void **state)
{
	struct staged fitted = {.s = script_new()}, jump = {.s = script_new()},
		      room = {.s = script_new()}, never = {.s = script_new()};

	lower(&fitted, 500000, 1200000, 0);
	assert_int_equal(fitted.rc, 0);
	assert_true(fitted.f.strength == 1 && fitted.f.steady);
	assert_int_equal(fitted.f.other_bytes, 500000);
	strike(&fitted);
	lower(&jump, 5000000, 1200000, 0);
	assert_int_equal(jump.rc, DETECT_SILENT);
	strike(&jump);
	/* Something else refused. */
	lower(&room, 500000, 1600000, -1);
	assert_int_equal(room.rc, DETECT_SILENT);
	strike(&room);
	lower(&never, 600000, 1550000, 0);
	assert_int_equal(never.rc, 0);
	assert_true(never.f.strength > 0.5 && never.f.strength < 0.8);
	strike(&never);
	(void)state;
}

/* It grew, so that no limit would do. */
static void test_limit_of_growth(void **state)
{
	struct staged t = {.s = script_new()};

	lower(&t, 600000, 1200000, 20000);
	assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.4);
	strike(&t);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_others),
	    cmocka_unit_test(test_larger_than_before), cmocka_unit_test(test_silent),
	    cmocka_unit_test(test_limit), cmocka_unit_test(test_limit_of_growth)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
