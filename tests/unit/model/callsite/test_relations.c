/* The material of a growing prompt, and its index. */
#include "model/world.h"

static void test_feeds(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t keep = script_stack(w.s, "main;remember"), build = script_stack(w.s, "main;build");
	uint32_t apart = script_stack(w.s, "main;apart");

	for (uint64_t turn = 1; turn < 200; turn++) {
		script_alloc(w.s, keep, 50000);
		script_alloc(w.s, apart, 900000); /* leaks twenty times as much: not its material */
		script_release(w.s, script_alloc(w.s, build, turn * 50000));
	}
	look(&w);
	assert_int_equal(
	    at(&w, keep)->relations.feeds, callsites_of_stack(w.p, STACK_STATS_HEAP, build));
	assert_int_equal(at(&w, apart)->relations.feeds, CALLSITE_NONE);
	assert_float_equal(at(&w, keep)->relations.feed_slope, 1, 0.05);
	end(&w);
	(void)state;
}

static void test_index(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t node = script_stack(w.s, "main;node"), table = script_stack(w.s, "main;table");
	uint64_t room = 16, array = script_alloc(w.s, table, room * 8);

	for (uint64_t i = 0; i < 100000; i++) {
		if (i == room) {
			room *= 2;
			array = script_realloc(w.s, array, table, room * 8);
		}
		script_alloc(w.s, node, 40);
	}
	look(&w);
	assert_true(at(&w, table)->size.geometric);
	assert_int_equal(
	    at(&w, table)->relations.index_of, callsites_of_stack(w.p, STACK_STATS_HEAP, node));
	assert_int_equal(at(&w, node)->relations.feeds, CALLSITE_NONE);
	assert_float_equal(survivors_bytes_until(at(&w, node), UINT64_MAX), 4000000, 1);
	assert_float_equal(survivors_bytes_until(at(&w, node), 0), 0, 1);
	end(&w);
	(void)state;
}

/* A list of all items that each step makes anew goes through them; a container's table, which is
 * enlarged where it lies, does not. */
static void test_list(void **state)
{
	for (int container = 0; container < 2; container++) {
		struct world w = {.s = script_new()};
		uint32_t item = script_stack(w.s, "main;item"),
			 list = script_stack(w.s, "main;list");
		uint64_t array = 0;

		for (uint64_t i = 1; i < 2000; i++) {
			script_alloc(w.s, item, 400);
			if (container)
				array = array ? script_realloc(w.s, array, list, i * 8)
					      : script_alloc(w.s, list, i * 8);
			else
				script_release(w.s, script_alloc(w.s, list, i * 8));
		}
		look(&w);
		assert_int_equal(at(&w, item)->relations.listed_by,
		    container ? CALLSITE_NONE : callsites_of_stack(w.p, STACK_STATS_HEAP, list));
		end(&w);
	}
	(void)state;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_feeds),
	    cmocka_unit_test(test_index),
	    cmocka_unit_test(test_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
