/* test_threads.c - threads that end, stay, or are a pool. */
#include "detect/scene.h"

#define STACK 8000000u
#define MS 1000000u /* in nanoseconds: a request takes so long, and a thread's start far less */

/* A server starts `count` threads, one after each request that takes that long, or all at once,
 * each with a table of its thread-local memory; the next one's stack is refused. */
static void threads(struct staged *t, int count, bool at_once, uint64_t takes_ns)
{
	uint32_t begin = script_stack(t->s, "main;serve;begin"),
		 work = script_stack(t->s, "main;serve;parse");

	for (int i = 0; i < count; i++) {
		script_alloc(t->s, begin, 288);
		for (int k = 0; !at_once && k < 20; k++)
			script_release(t->s, script_alloc(t->s, work, 2000));
		script_wait(t->s, takes_ns);
	}
	for (int k = 0; at_once && k < 2000; k++)
		script_release(t->s, script_alloc(t->s, work, 2000));
	script_failed_thread(t->s, begin, STACK);
	t->scene.limit.bytes = ((uint64_t)count + 1) * STACK;
	t->scene.limit.usage = ((uint64_t)count + 1) * STACK - 1000000;
	t->scene.limit.is_virtual = true;
	t->scene.limit.threads = (uint64_t)count;
	t->scene.limit.stacks = (uint64_t)count * STACK;
	/* Each has an arena, nearly all of it kept to grow into. */
	t->scene.slack = (struct scene_slack){.known = true,
	    .bytes = (uint64_t)count * STACK,
	    .reserved = (uint64_t)count * STACK,
	    .holes = (uint64_t)count};
	stage(t, detect_leak, true);
}

/* True if the stacks are no leak, and nothing but the limit is the cause. */
static bool is_pool(const struct staged *t)
{
	struct finding f;

	return (t->rc == DETECT_SILENT || t->f.form != FORM_STACKS) &&
	       !detect_external(&t->scene, &f) && f.strength > 0.9 &&
	       detect_concurrency(&t->scene, &f) == DETECT_SILENT;
}

/* Threads that do not end leak their stacks, which are no blocks. Then the limit is not too low,
 * and their arenas are half the matter at most. A pool of threads started at once is no leak, even
 * as the last thing that was done, and neither are a few threads. */
static void test_threads(void **state)
{
	struct staged t = {.s = script_new()}, pool = {.s = script_new()},
		      late = {.s = script_new()}, few = {.s = script_new()};
	double arenas;

	threads(&t, 60, false, MS);
	assert_int_equal(t.rc, 0);
	assert_int_equal(t.f.form, FORM_STACKS);
	assert_string_equal(blamed(&t), "begin");
	assert_true(t.f.strength > 0.9);
	assert_int_equal(t.f.other_bytes, 60 * STACK);
	assert_int_equal(finding_fact(&t.f, FACT_THREADS), 60);
	assert_true(detect_external(&t.scene, &t.f) == DETECT_SILENT || t.f.strength < 0.1);
	assert_int_equal(detect_fragmentation(&t.scene, &t.f), 0);
	arenas = t.f.strength;
	assert_true(arenas <= 0.55);
	strike(&t);

	threads(&pool, 60, true, 0);
	assert_true(is_pool(&pool));
	assert_int_equal(detect_fragmentation(&pool.scene, &pool.f), 0);
	assert_true(pool.f.strength > 1.5 * arenas);
	strike(&pool);

	threads(&late, 60, false, 0);
	assert_true(is_pool(&late));
	strike(&late);

	threads(&few, 15, false, MS);
	assert_true(few.rc == DETECT_SILENT || few.f.form != FORM_STACKS);
	strike(&few);
	(void)state;
}

/* As many threads had ended as there are now: they end, and many are at work at once. */
static void test_threads_end(void **state)
{
	for (uint64_t ended = 0; ended <= 60; ended += 60) {
		struct staged t = {.s = script_new()};

		t.scene.limit.threads_ended = ended;
		threads(&t, 60, false, MS);
		assert_int_equal(!t.rc && t.f.form == FORM_STACKS, !ended);
		assert_int_equal(detect_concurrency(&t.scene, &t.f), ended ? 0 : DETECT_SILENT);
		if (ended) {
			assert_int_equal(t.f.form, FORM_STACKS);
			assert_string_equal(blamed(&t), "begin");
			assert_true(t.f.strength > 0.9);
			assert_int_equal(t.f.other_bytes, 59 * STACK);
			assert_int_equal(finding_fact(&t.f, FACT_THREADS_ENDED), 60);
		}
		assert_true(detect_external(&t.scene, &t.f) == DETECT_SILENT || t.f.strength < 0.1);
		strike(&t);
	}
	(void)state;
}

/* Each thread takes an arena with its stack: a burst of threads is half the holes' own matter. */
static void test_arenas_of_a_burst(void **state)
{
	double strengths[2];

	for (uint64_t ended = 0; ended <= 60; ended += 60) {
		struct staged t = {.s = script_new()};

		t.scene.limit.threads_ended = ended;
		threads(&t, 60, true, 0);
		assert_int_equal(detect_fragmentation(&t.scene, &t.f), 0);
		strengths[ended / 60] = t.f.strength;
		strike(&t);
	}
	assert_true(strengths[1] < 0.55 * strengths[0]);
	(void)state;
}

/* Stacks of ended threads: if most that ended are left, nobody joins them, which is a leak; if few
 * are, they end and are joined later, and many are at work at once. */
static void test_unjoined(void **state)
{
	static const struct {
		uint64_t ended;
		bool leak;
	} cases[] = {{100, true}, {150, true}, {4000, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct staged t = {.s = script_new()};
		double strength;

		t.scene.limit.threads_ended = cases[i].ended;
		t.scene.limit.unjoined = 100ull * STACK;
		threads(&t, 30, false, MS);
		t.rc = detect_leak(&t.scene, &t.f);
		if (cases[i].leak) {
			assert_int_equal(t.rc, 0);
			assert_int_equal(t.f.form, FORM_UNJOINED);
			assert_string_equal(blamed(&t), "begin");
			assert_true(t.f.strength > 0.6);
			assert_int_equal(t.f.other_bytes, 100ull * STACK);
			strength = t.f.strength;
			assert_true(detect_concurrency(&t.scene, &t.f) == DETECT_SILENT ||
				    t.f.strength < strength / 2);
		} else {
			assert_true(t.rc == DETECT_SILENT || t.f.strength < 0.1);
			assert_int_equal(detect_concurrency(&t.scene, &t.f), 0);
			assert_int_equal(t.f.form, FORM_STACKS);
			assert_true(t.f.strength > 0.9);
			assert_true(t.f.other_bytes > 115ull * STACK);
		}
		strike(&t);
	}
	(void)state;
}

/* A sample has few of their tables: then the more threads, the less likely a pool. */
static void test_threads_of_a_sample(void **state)
{
	for (int sampled = 0; sampled < 2; sampled++) {
		struct staged t = {
		    .s = script_new(), .scene = {.sample_every = sampled ? 512 << 10 : 0}};

		threads(&t, 6, false, MS);
		t.scene.limit.threads = 96;
		t.scene.limit.stacks = 96ull * STACK;
		t.rc = detect_leak(&t.scene, &t.f);
		assert_int_equal(!t.rc && t.f.form == FORM_STACKS, sampled);
		assert_true(!sampled || (t.f.strength > 0.7 && t.f.strength < 0.8));
		strike(&t);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_threads),
	    cmocka_unit_test(test_threads_end),
	    cmocka_unit_test(test_arenas_of_a_burst),
	    cmocka_unit_test(test_unjoined),
	    cmocka_unit_test(test_threads_of_a_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
