/* Which call sites keep their blocks. */
#include "model/world.h"

static void test_keeping(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t leak = script_stack(w.s, "main;leak"), cache = script_stack(w.s, "main;cache");
	uint32_t start = script_stack(w.s, "main;start"), part = script_stack(w.s, "main;part");
	uint64_t ring[100] = {0};

	for (int i = 0; i < 500; i++)
		script_alloc(w.s, start, 1000);
	for (int i = 0; i < 10000; i++) {
		uint64_t p = script_alloc(w.s, part, 100);

		script_alloc(w.s, leak, 100);
		if (ring[i % 100])
			script_release(w.s, ring[i % 100]);
		ring[i % 100] = script_alloc(w.s, cache, 5000);
		if (i % 5) /* every fifth is forgotten */
			script_release(w.s, p);
	}
	look(&w);
	assert_true(at(&w, leak)->survivors.stays);
	assert_true(at(&w, part)->survivors.stays);
	assert_false(at(&w, cache)->survivors.stays);
	assert_false(at(&w, start)->survivors.stays);
	assert_int_equal(at(&w, part)->survivors.count, 2000);
	end(&w);
	(void)state;
}

/* A machine that stalls half-way must not make a leak look as if it had ended. */
static void test_stalled_clock(void **state)
{
	struct world w = {.s = script_new()};
	uint32_t leak = script_stack(w.s, "main;leak"), other = script_stack(w.s, "main;other");

	for (int i = 0; i < 5000; i++) {
		script_alloc(w.s, leak, 100);
		script_release(w.s, script_alloc(w.s, other, 100));
		script_step(w.s, i < 4500 ? 1000 : 20000);
	}
	look(&w);
	assert_true(at(&w, leak)->survivors.stays);
	end(&w);
	(void)state;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_keeping),
	    cmocka_unit_test(test_stalled_clock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
