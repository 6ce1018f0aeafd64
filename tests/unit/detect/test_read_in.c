/* What is read in is told from what turns of work leave. */
#include "detect/scene.h"

/* Blocks of three sizes in turn stay, each beside one that comes and goes: a copy of its size, or
 * work that is always as large. */
static void read_or_work(struct staged *t, bool work)
{
	static const uint64_t sizes[] = {400000, 800000, 1200000};
	uint32_t keep = script_stack(t->s, "main;keep"), take = script_stack(t->s, "main;take");

	for (int i = 0; i < 120; i++) {
		uint64_t size = sizes[i % 3];
		uint64_t at = script_alloc(t->s, take, work ? 1100000 : size);

		script_alloc(t->s, keep, size);
		script_release(t->s, at);
	}
	script_failed(t->s, keep, 400000);
}

static uint32_t callsite_of(const struct staged *t, const char *function)
{
	uint32_t i = 0;

	while (strcmp(t->p->list[i].function, function) != 0)
		i++;
	return i;
}

static void test_turns_beside(void **state)
{
	for (int work = 0; work < 2; work++) {
		struct staged t = {.s = script_new()};

		read_or_work(&t, work);
		stage(&t, detect_oversized_model, true);
		assert_int_equal(scene_is_read_in(&t.scene, callsite_of(&t, "keep")), !work);
		assert_true(
		    work ? t.rc == DETECT_SILENT || t.f.strength < 0.4 : t.f.strength >= 0.75);
		strike(&t);
	}
	(void)state;
}

/* What comes with each, of another size, is a layer's, too. */
static void test_company(void **state)
{
	struct staged t = {.s = script_new()};

	for (int i = 0; i < 30; i++) {
		script_alloc(t.s, script_stack(t.s, "main;weight"), 1000000);
		script_alloc(t.s, script_stack(t.s, "main;bias"), 200000);
	}
	stage(&t, detect_leak, true);
	assert_true(scene_in_company(&t.scene, &t.p->list[callsite_of(&t, "weight")]));
	strike(&t);
	(void)state;
}

/* Blocks of three sizes that all stay come in the same order each time, as parameters do, or in any
 * order, as requests of three kinds do. */
static void test_order(void **state)
{
	static const uint64_t sizes[] = {100000, 300000, 900000};

	for (int any = 0; any < 2; any++) {
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, "main;keep"), random = 1;

		for (uint32_t i = 0; i < 700; i++) {
			random = random * 1103515245 + 12345;
			script_alloc(t.s, keep, sizes[(any ? random >> 16 : i) % 3]);
		}
		script_failed(t.s, keep, 300000);
		stage(&t, any ? detect_leak : detect_oversized_model, true);
		assert_true(t.f.strength >= 0.75);
		assert_int_equal(scene_in_no_order(&t.p->list[callsite_of(&t, "keep")]), any);
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_turns_beside),
	    cmocka_unit_test(test_company), cmocka_unit_test(test_order)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
