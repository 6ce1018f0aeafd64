/* Speaks of blocks that every generation leaves behind; weakly if they feed a growing buffer. */
#include "detect/scene.h"

static void test_leak(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t leak = script_stack(t.s, "main;leak"), table = script_stack(t.s, "main;table");
	uint64_t room = 16, array = script_alloc(t.s, table, room * 8);

	for (uint64_t i = 0; i < 20000; i++) {
		if (i == room) {
			room *= 2;
			array = script_realloc(t.s, array, table, room * 8);
		}
		script_alloc(t.s, leak, 100);
	}
	script_failed(t.s, table, room * 16);
	stage(&t, detect_leak, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "leak");
	assert_true(t.f.strength >= 0.9);
	assert_true(t.f.bytes >= 2000000);
	assert_true(t.f.request_bytes > 0); /* the table's next size goes with it */
	strike(&t);
	(void)state;
}

static void test_history_is_weak(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t keep = script_stack(t.s, "main;remember"), build = script_stack(t.s, "main;build");

	for (uint64_t turn = 1; turn < 100; turn++) {
		script_alloc(t.s, keep, 10000);
		script_release(t.s, script_alloc(t.s, build, turn * 10000));
	}
	stage(&t, detect_leak, true);
	assert_true(t.rc == DETECT_SILENT || t.f.strength <= 0.4);
	strike(&t);
	(void)state;
}

static void test_silent(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t load = script_stack(t.s, "main;load"), work = script_stack(t.s, "main;work");
	uint64_t ring[50] = {0};

	for (int i = 0; i < 1000; i++)
		script_alloc(t.s, load, 1000);
	for (int i = 0; i < 10000; i++) {
		if (ring[i % 50])
			script_release(t.s, ring[i % 50]);
		ring[i % 50] = script_alloc(t.s, work, 10000);
	}
	stage(&t, detect_leak, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* While the call that makes them is open, there is no finished work that left them. */
static void test_one_call(void **state)
{
	double before = 2;

	for (enum open_call as = OPEN_CALL_NO; as <= OPEN_CALL_YES; as++) {
		struct staged t = {.s = script_new(), .open_call = as};

		for (int i = 0; i < 1000; i++)
			script_alloc(t.s, script_stack(t.s, "main;answer;fetch"), 20000);
		script_failed(t.s, script_stack(t.s, "main;answer;fetch"), 20000);
		stage(&t, detect_leak, true);
		assert_int_equal(t.rc, 0);
		assert_true(t.f.strength < before - 0.1);
		before = t.f.strength;
		strike(&t);
	}
	assert_true(before < 0.4);
	(void)state;
}

/* Few large blocks with next to no traffic beside them: weights and pools are made so. Not if
 * many small blocks come and go between any two, or if sizes only rise. */
static void test_set_up(void **state)
{
	double set_up = 0;

	for (int way = 0; way < 3; way++) {
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, "main;keep"),
			 work = script_stack(t.s, "main;work");

		for (int i = 0; i < 60; i++) {
			script_alloc(t.s, keep, way == 2 ? 1000000 + i / 20 * 90000 : 1000000);
			for (int k = 0; way == 1 && k < 20; k++)
				script_release(t.s, script_alloc(t.s, work, 200));
		}
		script_failed(t.s, keep, 1000000);
		stage(&t, detect_leak, true);
		assert_int_equal(t.rc, 0);
		if (!way)
			set_up = t.f.strength;
		else
			assert_true(t.f.strength >= 1.9 * set_up);
		strike(&t);
	}
	assert_true(set_up > 0.3 && set_up <= 0.5);
	(void)state;
}

/* Nor if hardly two have one size: data come in so, and a model's layers are alike. */
static void test_scattered(void **state)
{
	double strength[2];

	for (int scattered = 0; scattered < 2; scattered++) {
		struct staged t = {.s = script_new()};
		uint32_t keep = script_stack(t.s, "main;keep");
		uint64_t seed = 5;

		for (int i = 0; i < 60; i++)
			script_alloc(t.s, keep,
			    1000000 + (scattered ? dice(&seed, 200000) : dice(&seed, 3) * 90000));
		script_failed(t.s, keep, 1000000);
		stage(&t, detect_leak, true);
		assert_int_equal(t.rc, 0);
		strength[scattered] = t.f.strength;
		strike(&t);
	}
	assert_true(strength[0] <= 0.5);
	assert_true(strength[1] >= 0.75); /* nothing was given back: it may still be starting */
	(void)state;
}

/* Only used bytes of the arenas' growth can be a leak's. */
static void test_arenas(void **state)
{
	double full = 0;

	for (int empty = 0; empty < 2; empty++) {
		struct staged t = {.s = script_new()};
		uint32_t at = script_stack(t.s, "main@/app/main.py:9;keep@/app/main.py:5");

		for (int i = 0; i < 100; i++)
			script_map(t.s, at, 1 << 20, 0, 0);
		script_failed(t.s, at, 1 << 20);
		t.scene.slack = (struct scene_slack){
		    .known = true, .arenas_steady = 10 << 20, .arenas = (empty ? 80 : 0) << 20};
		stage(&t, detect_leak, true);
		for (uint32_t i = 0; i < t.p->count; i++)
			t.p->list[i].arena_share.any = true;
		assert_int_equal(detect_leak(&t.scene, &t.f), 0);
		if (empty)
			assert_true(t.f.strength < full / 4);
		full = t.f.strength;
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_call),
	    cmocka_unit_test(test_leak),
	    cmocka_unit_test(test_history_is_weak),
	    cmocka_unit_test(test_silent),
	    cmocka_unit_test(test_set_up),
	    cmocka_unit_test(test_scattered),
	    cmocka_unit_test(test_arenas),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
