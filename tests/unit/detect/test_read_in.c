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

/* Six blocks come and go one after the other for each that stays. They are its parts where they sum
 * to it, to a quarter of it as bytes become floats, or are there together; or else a turn's work.
 */
static void test_turns_of_several(void **state)
{
	static const struct {
		uint64_t share; /* of the kept block, in thousandths */
		bool together, read;
	} ways[] = {{167, false, true}, {42, false, true}, {100, false, false}, {250, true, true}};

	for (size_t way = 0; way < sizeof(ways) / sizeof(*ways); way++) {
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, "main;keep"),
			 take = script_stack(t.s, "main;take");

		for (uint64_t i = 0; i < 120; i++) {
			uint64_t size = 400000 * (1 + i % 3), at[6];

			for (int k = 0; k < 6; k++) {
				at[k] = script_alloc(t.s, take, size * ways[way].share / 1000);
				if (!ways[way].together)
					script_release(t.s, at[k]);
			}
			script_alloc(t.s, keep, size);
			for (int k = 0; ways[way].together && k < 6; k++)
				script_release(t.s, at[k]);
		}
		script_failed(t.s, keep, 400000);
		stage(&t, detect_oversized_model, true);
		assert_int_equal(
		    scene_is_read_in(&t.scene, callsite_of(&t, "keep")), ways[way].read);
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

/* A block's entry in a list, on the same line, makes no second turn of it. */
static void test_turns_with_entries(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t keep = script_stack(t.s, "keep@/app/m.cpp:3;block@/lib/libx.so"),
		 entry = script_stack(t.s, "keep@/app/m.cpp:3;entry@/lib/libx.so"),
		 take = script_stack(t.s, "main;take");

	for (uint64_t i = 0; i < 120; i++) {
		uint64_t at = script_alloc(t.s, take, 1100000);

		script_alloc(t.s, keep, 400000 * (1 + i % 3));
		script_alloc(t.s, entry, 32);
		script_release(t.s, at);
	}
	script_failed(t.s, keep, 400000);
	stage(&t, detect_oversized_model, true);
	assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.4);
	strike(&t);
	(void)state;
}

/* In a sample only the others' estimated counts tell of a pause between two goes, and so they do
 * where the pause lies within one step of the line's history. */
static void test_second_go(void **state)
{
	for (int way = 0; way < 4; way++) {
		struct staged t = {.s = script_new()};
		uint32_t part = script_stack(t.s, "main;part"),
			 work = script_stack(t.s, "main;serve");
		const struct callsite *p;

		for (int i = 0; i < 200; i++) {
			for (int k = 0; i == (way == 3 ? 98 : 100) && k < (way ? 1500 : 0); k++)
				script_release(t.s, script_alloc(t.s, work, 2000));
			script_alloc(t.s, part, 400000);
		}
		t.scene.sample_every = way >= 2 ? 524288 : 0;
		stage(&t, detect_leak, true);
		p = &t.p->list[callsite_of(&t, "part")];
		assert_int_equal(scene_second_go(&t.scene, p) > 0, way > 0);
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_turns_beside),
	    cmocka_unit_test(test_turns_of_several), cmocka_unit_test(test_company),
	    cmocka_unit_test(test_order), cmocka_unit_test(test_turns_with_entries),
	    cmocka_unit_test(test_second_go)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
