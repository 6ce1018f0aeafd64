/* Finds blocks that a device's line made in one go, when the work beside had stopped. */
#include "detect/scene.h"

#include "detect/late.h"

/* Requests come and go; `kept`: one block of each stays at that line. */
static void serve(struct staged *t, int requests, uint32_t kept)
{
	uint32_t work = script_stack(t->s, "main;handle");

	for (int i = 0; i < requests; i++) {
		script_release(t->s, script_alloc(t->s, work, 20000));
		if (kept)
			script_alloc(t->s, kept, 10000);
	}
}

static void load(struct staged *t, uint32_t at, int layers)
{
	for (int i = 0; i < layers; i++)
		script_alloc(t->s, at, 100000);
}

static bool is_late(struct staged *t, const char *function, struct late *out)
{
	struct late_work work = late_work_of(&t->scene);

	for (uint32_t i = 0; i < t->p->count; i++)
		if (strcmp(t->p->list[i].function, function) == 0)
			return late_at(&t->scene, &work, i, out);
	fail_msg("%s is no call site", function);
	return false;
}

static void test_after_work(void **state)
{
	struct staged t = {.s = script_new(), .scene = {.space = "cuda:0"}};
	uint32_t encoder = script_stack(t.s, "main;handle;load_encoder");
	struct late late;

	load(&t, script_stack(t.s, "main;load_decoder"), 20);
	serve(&t, 40, 0);
	load(&t, encoder, 10);
	script_failed(t.s, encoder, 100000);
	stage(&t, detect_leak, true);
	assert_true(is_late(&t, "load_encoder", &late));
	assert_int_equal(late.bytes, 1000000);
	assert_int_equal(late.blocks, 10);
	assert_false(late.again);
	assert_false(is_late(&t, "load_decoder", &late));
	assert_true(t.f.strength < 0.5);
	assert_int_equal(detect_oversized_model(&t.scene, &t.f), 0);
	assert_true(t.f.strength > 0.7 && t.f.late);
	assert_int_equal(t.f.bytes, 1000000);
	t.scene.space = NULL; /* the host's work shows in other ways */
	assert_false(is_late(&t, "load_encoder", &late));
	strike(&t);
	(void)state;
}

static void test_once_more(void **state)
{
	struct staged t = {.s = script_new(), .scene = {.space = "cuda:0"}};
	uint32_t make = script_stack(t.s, "main;make");
	struct late late;

	load(&t, make, 20);
	serve(&t, 40, 0);
	load(&t, make, 3);
	script_failed(t.s, make, 100000);
	stage(&t, detect_oversized_model, true);
	assert_true(is_late(&t, "make", &late));
	assert_true(late.again);
	assert_int_equal(late.blocks, 3);
	assert_int_equal(t.f.bytes, 300000);
	strike(&t);
	(void)state;
}

/* No name says that a model is loaded: then one request made them. */
static void test_one_request(void **state)
{
	struct staged t = {.s = script_new(), .scene = {.space = "cuda:0"}};
	uint32_t make = script_stack(t.s, "main;make");

	load(&t, script_stack(t.s, "main;load_decoder"), 20);
	serve(&t, 40, 0);
	load(&t, make, 10);
	script_failed(t.s, make, 100000);
	stage(&t, detect_oversized_intermediate, true);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength > 0.8);
	assert_string_equal(blamed(&t), "make");
	strike(&t);
	(void)state;
}

static void test_part_of_work(void **state)
{
	for (int way = 0; way < 3; way++) {
		struct staged t = {.s = script_new(), .scene = {.space = "cuda:0"}};
		uint32_t keep = script_stack(t.s, "main;keep");
		struct late late;

		serve(&t, 40, way == 0 ? keep : 0);
		/* Too few to miss the work; or so many that they may be of as many requests. */
		load(&t, keep, way == 1 ? 1 : way == 2 ? 200 : 10);
		script_failed(t.s, keep, 100000);
		stage(&t, detect_leak, true);
		assert_false(is_late(&t, "keep", &late));
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_after_work),
	    cmocka_unit_test(test_once_more), cmocka_unit_test(test_one_request),
	    cmocka_unit_test(test_part_of_work)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
