/* Speaks of several threads' working sets; not of one thread's, nor of what stays. */
#include "detect/scene.h"

struct blocks {
	struct block list[64];
	uint32_t count;
};

static int each(const struct scene *scene, int (*fn)(void *arg, const struct block *b), void *arg)
{
	const struct blocks *blocks = scene->live;
	int rc = 0;

	for (uint32_t i = 0; i < blocks->count && !rc; i++)
		rc = fn(arg, &blocks->list[i]);
	return rc;
}

/* Requests one at a time, and then so many that overlap, on as many threads. */
static void serve(
    struct staged *t, struct blocks *blocks, uint32_t before, uint32_t overlap, uint32_t threads)
{
	uint32_t work = script_stack(t->s, "main;answer");

	blocks->count = 0;
	script_alloc(t->s, script_stack(t->s, "main;load"), 1000000);
	for (uint32_t i = 0; i < before; i++) {
		uint64_t at = script_alloc(t->s, work, 500000);

		script_wait(t->s, 10000000);
		script_release(t->s, at);
	}
	for (uint32_t i = 0; i < overlap; i++)
		blocks->list[blocks->count++] =
		    (struct block){.address = script_alloc(t->s, work, 500000),
			.size = 500000,
			.stack = work,
			.thread = i % threads};
	script_failed(t->s, work, 500000);
	t->scene.live = blocks;
	t->scene.each_live = each;
	stage(t, &detect_concurrency, true);
}

static void test_threads(void **state)
{
	struct staged t = {.s = script_new()};
	struct blocks blocks;

	serve(&t, &blocks, 200, 8, 8);
	assert_int_equal(t.rc, 0);
	assert_string_equal(blamed(&t), "answer");
	assert_true(t.f.strength >= 0.9);
	assert_int_equal(t.f.bytes, 7 * 500000);
	strike(&t);
	(void)state;
}

/* The burst is larger than all the work before it; it is no weights, either. */
static void test_larger_than_before(void **state)
{
	struct staged t = {.s = script_new(), .scene = {.space = "torch:0"}};
	struct blocks blocks;

	serve(&t, &blocks, 20, 60, 6);
	assert_int_equal(t.rc, 0);
	assert_true(t.f.strength >= 0.9);
	assert_int_equal(t.f.bytes, 50 * 500000);
	assert_true(
	    detect_oversized_model.judge(&t.scene, &t.f) == DETECT_SILENT || t.f.strength < 0.1);
	strike(&t);
	(void)state;
}

static void test_one_thread(void **state)
{
	struct staged t = {.s = script_new()};
	struct blocks blocks;

	serve(&t, &blocks, 200, 8, 1);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

/* What each thread leaves behind is no working set. */
static void test_leak(void **state)
{
	struct staged t = {.s = script_new()};
	uint32_t keep = script_stack(t.s, "main;keep");
	struct blocks blocks = {.count = 0};

	for (uint32_t i = 0; i < 64; i++)
		blocks.list[blocks.count++] =
		    (struct block){.address = script_alloc(t.s, keep, 100000),
			.size = 100000,
			.stack = keep,
			.thread = i % 4};
	script_failed(t.s, keep, 100000);
	t.scene.live = &blocks;
	t.scene.each_live = each;
	stage(&t, &detect_concurrency, true);
	assert_int_equal(t.rc, DETECT_SILENT);
	strike(&t);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_larger_than_before), cmocka_unit_test(test_one_thread),
	    cmocka_unit_test(test_leak)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
