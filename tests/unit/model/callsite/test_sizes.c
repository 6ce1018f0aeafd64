/* Whether the blocks of a call site grow. */
#include "model/world.h"

#include <math.h>

/* One in eight gets a free range larger than its request. */
static void test_padded(void **state)
{
	const uint64_t mib = 1 << 20;

	for (int known = 0; known < 2; known++) {
		struct world w = {.s = script_new()};
		uint32_t grow = script_stack(w.s, "main;grow");
		uint64_t seed = 7;

		for (uint64_t i = 0; i < 480; i++)
			script_release(w.s, script_alloc(w.s, grow,
						mib + mib / 16 + 1500 * i +
						    (i % 8 == 3 ? dice(&seed, mib - 1) : 0)));
		w.padding = known ? mib : 0;
		look(&w);
		assert_true(at(&w, grow)->size.grows == known);
		end(&w);
	}
	(void)state;
}

static void test_sizes(void **state)
{
	struct world w = {.s = script_new()};
	uint64_t seed = 5;
	uint32_t grow = script_stack(w.s, "main;grow"), noise = script_stack(w.s, "main;noise");
	uint32_t saw = script_stack(w.s, "main;saw"), stops = script_stack(w.s, "main;stops");
	uint32_t levels = script_stack(w.s, "main;levels"), slow = script_stack(w.s, "main;slow");

	for (uint64_t i = 0; i < 3000; i++) {
		script_release(w.s, script_alloc(w.s, grow, 1000 * (i + 1) + dice(&seed, 200000)));
		script_release(w.s, script_alloc(w.s, noise, 1 + dice(&seed, 3000000)));
		script_release(w.s, script_alloc(w.s, saw, 50000 * (i % 47 + 1)));
		script_release(w.s, script_alloc(w.s, stops, 1000 * ((i < 900 ? i : 900) + 1)));
		/* A number in it gets more digits, for two thirds of the time. */
		script_release(w.s,
		    script_alloc(w.s, levels,
			i < 2000 ? 900 * (i < 900 ? i : 900) + 40 * i : 900 * 900 + 40 * 2000));
		script_release(
		    w.s, script_alloc(w.s, slow, 1000 + (uint64_t)(100000 * log1p((double)i))));
	}
	look(&w);
	assert_true(at(&w, grow)->size.grows);
	assert_false(at(&w, grow)->size.geometric);
	assert_false(at(&w, noise)->size.grows);
	assert_false(at(&w, saw)->size.grows);
	assert_false(at(&w, stops)->size.grows);
	assert_false(at(&w, levels)->size.grows);
	assert_true(at(&w, slow)->size.grows);
	assert_false(at(&w, grow)->survivors.stays);
	end(&w);
	(void)state;
}

/* A large block once a turn among many small ones of the same line. */
static void test_hidden_series(void **state)
{
	struct world w = {.s = script_new()};
	uint64_t seed = 5;
	uint32_t join = script_stack(w.s, "main;build@m.c:4;join@/lib/libc.so.6");
	uint32_t list = script_stack(w.s, "main;build@m.c:4;list@/lib/libc.so.6");

	for (uint64_t turn = 1; turn < 60; turn++) {
		uint64_t prompt = script_alloc(w.s, join, turn * 100000);
		for (uint64_t i = 0; i < 20 + dice(&seed, 30); i++)
			script_release(w.s, script_alloc(w.s, list, 30000));
		script_release(w.s, prompt);
	}
	look(&w);
	assert_int_equal(callsites_of_stack(w.p, STACK_STATS_HEAP, join),
	    callsites_of_stack(w.p, STACK_STATS_HEAP, list));
	assert_true(at(&w, join)->size.grows);
	end(&w);
	(void)state;
}

/* One of many answers inflates to thousands of times their size; a transcript that realloc()
 * extends with every answer, among their work, does grow. */
static void test_one_object(void **state)
{
	for (int inflates = 0; inflates < 2; inflates++) {
		struct world w = {.s = script_new()};
		uint32_t out = script_stack(w.s, "main;answer;out"),
			 work = script_stack(w.s, "main;work");
		uint64_t text = 0;

		for (int i = 0; i < 400; i++) {
			uint64_t small =
			    script_realloc(w.s, script_alloc(w.s, out, 1000), out, 3000);

			script_release(w.s, small);
			if (inflates)
				continue;
			script_release(w.s, script_alloc(w.s, work, 300000));
			text = text ? script_realloc(w.s, text, out, 4000 + 2000 * (uint64_t)i)
				    : script_alloc(w.s, out, 4000);
		}
		if (inflates)
			text = script_alloc(w.s, out, 1000);
		for (uint64_t size = 2000; inflates && size < 100000000; size *= 2)
			text = script_realloc(w.s, text, out, size);
		look(&w);
		assert_int_equal(at(&w, out)->size.grows, !inflates);
		end(&w);
	}
	(void)state;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_padded),
	    cmocka_unit_test(test_hidden_series),
	    cmocka_unit_test(test_one_object),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
