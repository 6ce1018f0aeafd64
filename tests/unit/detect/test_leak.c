/* Speaks of what every generation leaves behind; weakly, where that feeds a growing buffer. */
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
	stage(&t, &detect_leak, true);
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
	stage(&t, &detect_leak, true);
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
	stage(&t, &detect_leak, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* While the call that makes them is open, nothing is finished that they could be left from. */
static void test_one_call(void **state)
{
	double before = 2;

	for (enum open_call as = OPEN_CALL_NO; as <= OPEN_CALL_YES; as++) {
		struct staged t = {.s = script_new(), .open_call = as};

		for (int i = 0; i < 1000; i++)
			script_alloc(t.s, script_stack(t.s, "main;answer;fetch"), 20000);
		script_failed(t.s, script_stack(t.s, "main;answer;fetch"), 20000);
		stage(&t, &detect_leak, true);
		assert_int_equal(t.rc, 0);
		assert_true(t.f.strength < before - 0.1);
		before = t.f.strength;
		strike(&t);
	}
	assert_true(before < 0.4);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_one_call),
	    cmocka_unit_test(test_leak),
	    cmocka_unit_test(test_history_is_weak),
	    cmocka_unit_test(test_silent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
