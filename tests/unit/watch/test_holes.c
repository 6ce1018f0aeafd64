/* Holes between PyTorch's blocks, and what is free but of no use to the largest request. */
#include "watch/holes.h"

#include "model/spaces.h"

static void test_measure(void **state)
{
	struct script *s = script_new();
	uint32_t cuda = script_space(s, "cuda:0"), torch = script_space(s, "torch:0");
	uint32_t a = script_stack(s, "main@/app/a.py:1");
	const uint64_t one = 0x10000000, two = 0x20000000;
	const struct space *sp;
	struct holes holes;
	struct model *m;

	script_space_alloc(s, cuda, a, one, 20 * MiB);
	script_space_alloc(s, cuda, a, two, 2 * MiB);
	script_space_alloc(s, cuda, a, 0x50000000, 64 * MiB); /* not PyTorch's: no hole */
	script_space_alloc(s, torch, a, one, 4 * MiB);
	script_space_alloc(s, torch, a, one + 8 * MiB, 1 * MiB);
	script_space_alloc(s, torch, a, two, 1 * MiB);
	m = spaces_model(s);
	sp = spaces_find(m->spaces, "torch:0");
	assert_int_equal(holes_measure(m, sp, 5 * MiB, &holes), 0);
	assert_int_equal(holes.bytes, 16 * MiB);
	assert_int_equal(holes.largest, 11 * MiB);
	assert_int_equal(holes.usable, 11 * MiB);
	assert_int_equal(holes_measure(m, sp, 12 * MiB, &holes), 0);
	assert_int_equal(holes.usable, 0);
	assert_int_equal(holes_largest_request(sp->model), 4 * MiB);
	assert_int_equal(holes_largest_request(m), 0);
	model_free(m);
	script_free(s);
	(void)state;
}

static void test_unusable(void **state)
{
	const struct holes holes = {.bytes = 30, .largest = 20, .usable = 20}, none = {0};

	/* The driver's rest counts where the request fits into it. */
	assert_float_equal(holes_unusable(&holes, 70, 20), 0.1, 1e-9);
	assert_float_equal(holes_unusable(&holes, 10, 20), 0.5, 1e-9);
	assert_float_equal(holes_unusable(&none, 10, 20), 1, 1e-9);
	assert_float_equal(holes_unusable(&none, 0, 20), 0, 1e-9);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_measure), cmocka_unit_test(test_unusable)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
