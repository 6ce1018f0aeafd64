/* Speaks of memory that ran out while it was filled, and not once it was worked with. */
#include "detect/scene.h"

static const uint64_t shapes[] = {40000, 40000, 110000, 110000, 500};

static enum role weights[64];

static void known(struct staged *t)
{
	for (size_t i = 0; i < sizeof(weights) / sizeof(*weights); i++)
		weights[i] = ROLE_WEIGHTS_LOAD;
	t->scene.roles = weights;
}

static void load(struct staged *t, int layers)
{
	uint32_t at = script_stack(t->s, "main;build");

	t->scene.space = "torch:0";
	for (int i = 0; i < layers; i++)
		for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++)
			script_alloc(t->s, at, shapes[k]);
}

static void test_loading(void **state)
{
	struct staged t = {.s = script_new()};

	load(&t, 40);
	script_failed(t.s, script_stack(t.s, "main;build"), 110000);
	stage(&t, &detect_oversized_model, true);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "build");
	assert_true(t.f.strength == 0.8);
	assert_int_equal(t.f.bytes, t.p->live_bytes);
	assert_int_equal(t.f.request_bytes, 110000);
	known(&t);
	assert_int_equal(detect_oversized_model.judge(&t.scene, &t.f), 0);
	assert_true(t.f.strength == 1);
	strike(&t);
	(void)state;
}

/* Each parameter is staged first. */
static void test_staged_copies(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t copy = script_stack(t.s, "main;copy");

	for (int i = 0; i < 40; i++) {
		uint64_t staged = script_alloc(t.s, copy, 110000);

		load(&t, 1);
		script_release(t.s, staged);
	}
	script_failed(t.s, copy, 110000);
	stage(&t, &detect_oversized_model, true);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength >= 0.7);
	strike(&t);
	(void)state;
}

static void test_worked_with(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t work = script_stack(t.s, "main;forward");

	load(&t, 40);
	for (int i = 0; i < 2000; i++)
		script_release(t.s, script_alloc(t.s, work, 30000));
	script_failed(t.s, work, 30000);
	stage(&t, &detect_oversized_model, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* On the host, too, also after much that was given back while the program's modules were run; but
 * not after calls that worked, nor while there is work. */
static void test_host(void **state)
{
	for (int worked = 0; worked < 3; worked++) {
		struct staged t = {.s = script_new()};
		uint32_t start = script_stack(t.s, "<module>@/app/main.py:1"),
			 work = script_stack(t.s, "<module>@/app/main.py:9;answer@/app/main.py:5");

		for (int i = 0; i < 2000; i++)
			script_release(t.s, script_alloc(t.s, worked == 1 ? work : start, 30000));
		for (int i = 0; i < 40; i++) {
			load(&t, 1);
			for (int k = 0; worked == 2 && k < 30; k++)
				script_release(t.s, script_alloc(t.s, work, 30000));
		}
		t.scene.space = NULL;
		script_failed(t.s, script_stack(t.s, "main;build"), 110000);
		stage(&t, &detect_oversized_model, true);
		if (!worked) {
			assert_int_equal(t.rc, 0);
			assert_string_equal(blamed(&t), "build");
			assert_true(t.f.strength >= 0.8);
			assert_int_equal(t.f.request_bytes, 110000);
		} else {
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.4);
		}
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_loading),
	    cmocka_unit_test(test_staged_copies), cmocka_unit_test(test_worked_with),
	    cmocka_unit_test(test_host)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
