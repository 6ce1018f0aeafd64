/* Tells graphs captured up front from graphs captured while others serve; silent without any. */
#include "detect/graphs.h"

#include "detect/scene.h"

static detector *asked;

/* What capture() allocated belongs to graphs. */
static int ask(const struct scene *scene, struct finding *out)
{
	static uint64_t bytes[16];
	struct scene with = *scene;

	memset(bytes, 0, sizeof(bytes));
	for (uint32_t i = 0; scene->graphs.captures && i < scene->callsites->count; i++)
		if (strcmp(scene->callsites->list[i].function, "capture") == 0)
			bytes[i] = scene->callsites->list[i].facts.live_bytes;
	with.graphs.bytes = bytes;
	return asked(&with, out);
}

static void judge(struct staged *t, detector *detect, uint64_t captures, uint64_t launches)
{
	uint32_t input, output;

	*t = (struct staged){.s = script_new(),
	    .scene = {.space = "torch:0",
		.graphs = {.captures = captures, .launches = launches, .slack = 30000000}}};
	script_alloc(t->s, script_stack(t->s, "main;load"), 3000000);
	input = script_stack(t->s, "main;warm;input");
	output = script_stack(t->s, "main;warm;capture");
	for (uint64_t i = 0; i < 10; i++) {
		script_alloc(t->s, input, 1000000 + i * 10000);
		script_alloc(t->s, output, 2000000 + i * 20000);
	}
	script_failed(t->s, input, 1100000);
	asked = detect;
	stage(t, ask, true);
}

static void test_up_front(void **state)
{
	struct staged t;

	for (uint64_t launches = 0; launches < 5; launches += 4) {
		judge(&t, detect_batch_prealloc, 10, launches);
		assert_int_equal(t.rc, 0);
		assert_int_equal(t.f.form, FORM_GRAPHS);
		assert_true(t.f.strength == 1);
		assert_string_equal(blamed(&t), "capture");
		/* Inputs, one for each, and the free memory of the graphs' pools. */
		assert_int_equal(t.f.claim_count, 2);
		assert_int_equal(t.f.slack_bytes, 30000000);
		assert_int_equal(t.f.request_bytes, 1100000);
		assert_int_equal(finding_fact(&t.f, FACT_GRAPHS), 10);
		strike(&t);
		judge(&t, detect_state_retention, 10, launches);
		assert_int_equal(t.rc, DETECT_SILENT);
		strike(&t);
	}
	(void)state;
}

static void test_in_between(void **state)
{
	struct staged t;

	judge(&t, detect_state_retention, 10, 40);
	assert_int_equal(t.rc, 0);
	assert_int_equal(t.f.form, FORM_GRAPHS);
	assert_true(t.f.strength == 1);
	strike(&t);
	judge(&t, detect_batch_prealloc, 10, 40);
	assert_true(t.rc == DETECT_SILENT || t.f.form != FORM_GRAPHS);
	strike(&t);
	(void)state;
}

static void test_none(void **state)
{
	struct staged t;

	judge(&t, detect_batch_prealloc, 0, 0);
	assert_true(t.rc == DETECT_SILENT || t.f.form != FORM_GRAPHS);
	strike(&t);
	judge(&t, detect_oversized_model, 10, 0);
	assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.2);
	strike(&t);
	(void)state;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_up_front),
	    cmocka_unit_test(test_in_between),
	    cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
