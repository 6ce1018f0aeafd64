/* The model against sums kept by the test; the high-water mark, and the failure's copy of it. */
#include "model/model.h"
#include "model/read.h"
#include "model/script.h"

static void test_random(void **state)
{
	struct script *s = script_new();
	uint64_t seed = 31, live[300] = {0}, peak = 0;
	uint32_t stacks[20];
	struct model *m;

	for (int i = 0; i < 20; i++) {
		char text[32];
		snprintf(text, sizeof(text), "main;f%d", i);
		stacks[i] = script_stack(s, text);
	}
	for (int i = 0; i < 20000; i++) {
		uint64_t *slot = &live[dice(&seed, 300)];

		if (!*slot)
			*slot = script_alloc(s, stacks[dice(&seed, 20)], 1 + dice(&seed, 5000));
		else if (dice(&seed, 4) == 0)
			*slot = script_realloc(
			    s, *slot, stacks[dice(&seed, 20)], 1 + dice(&seed, 9000));
		else {
			script_release(s, *slot);
			*slot = 0;
		}
		if (script_live(s) > peak)
			peak = script_live(s);
	}
	m = read_all(script_feed(s));
	assert_int_equal(m->blocks.bytes, script_live(s));
	assert_int_equal(m->peak.bytes, peak);
	model_free(m);
	script_free(s);
	(void)state;
}

/* Live bytes at the mark are told for each stack, though nothing was copied then. */
static void test_high_water_mark(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
	uint64_t first = script_alloc(s, a, 1000), second = script_alloc(s, b, 500), bytes, count;
	struct model *m;

	script_release(s, first);
	script_alloc(s, b, 700);
	script_release(s, second);
	m = read_all(script_feed(s));
	assert_int_equal(m->peak.bytes, 1500);
	model_stack_stats(m, find_stack(m, a, STACK_STATS_HEAP), AT_PEAK, &bytes, &count);
	assert_int_equal(bytes, 1000);
	model_stack_stats(m, find_stack(m, b, STACK_STATS_HEAP), AT_PEAK, &bytes, &count);
	assert_int_equal(bytes, 500);
	model_stack_stats(m, find_stack(m, b, STACK_STATS_HEAP), AT_END, &bytes, &count);
	assert_int_equal(bytes, 700);
	model_free(m);
	script_free(s);
	(void)state;
}

/* However many stacks changed since: it is the latest mark's. */
static void test_marks_of_many(void **state)
{
	struct script *s = script_new();
	uint64_t at[6000], more = 0, bytes, count;
	uint32_t stacks[6000];
	struct model *m;

	for (int i = 0; i < 6000; i++) {
		char text[32];

		snprintf(text, sizeof(text), "main;f%d", i);
		stacks[i] = script_stack(s, text);
	}
	for (int round = 0; round < 3; round++) {
		/* A higher mark each time; then all change. */
		for (int i = 0; i < 6000; i++)
			at[i] = script_alloc(s, stacks[i], 1000 + (uint64_t)round);
		if (more)
			script_release(s, more);
		more = script_alloc(s, stacks[0], 10);
		for (int i = 0; i < 6000; i++)
			script_release(s, at[i]);
	}
	m = read_all(script_feed(s));
	assert_int_equal(m->peak.bytes, 6000 * 1002 + 10);
	for (int i = 1; i < 6000; i++) {
		model_stack_stats(
		    m, find_stack(m, stacks[i], STACK_STATS_HEAP), AT_PEAK, &bytes, &count);
		assert_int_equal(bytes, 1002);
		assert_int_equal(count, 1);
	}
	model_free(m);
	script_free(s);
	(void)state;
}

static void test_failure_keeps_the_moment(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;a"), b = script_stack(s, "main;b");
	uint64_t block = script_alloc(s, a, 1000), bytes, count;
	struct model *m;
	const struct failure *f;

	script_failed(s, b, 5000);
	script_failed(s, b, 100); /* its echo */
	script_release(s, block);
	script_exit(s, 1);
	m = read_all(script_feed(s));
	f = model_failure(m);
	assert_non_null(f);
	assert_int_equal(f->size, 5000);
	assert_int_equal(f->count, 2);
	assert_int_equal(m->blocks.bytes, 0);
	model_stack_stats(m, find_stack(m, a, STACK_STATS_HEAP), AT_FAILURE, &bytes, &count);
	assert_int_equal(bytes, 1000);
	model_free(m);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_random),
	    cmocka_unit_test(test_high_water_mark),
	    cmocka_unit_test(test_marks_of_many),
	    cmocka_unit_test(test_failure_keeps_the_moment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
