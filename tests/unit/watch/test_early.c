/* What is said of a process that still runs: the cause if memory ran out now, and how much of the
 * confidence is left while part of the limit is free. */
#include "model/unit.h"

#include <math.h>

#include "model/script.h"
#include "watch/early.h"

#define LIMIT (256 * MiB)
#define TURNS 160u
#define TURN_NS 1000000u

static struct early early;

/* Serve some turns: each keeps `kept` bytes, and releases a buffer. The start holds `before`. */
static struct script *serve(uint64_t before, uint64_t kept)
{
	struct script *s = script_new();
	uint32_t start = script_stack(s, "main;start;load"), keep, build;
	uint64_t used = before;

	keep = script_stack(s, "main;turn;remember");
	build = script_stack(s, "main;turn;prompt");
	script_alloc(s, start, before);
	for (unsigned i = 0; i < TURNS; i++) {
		uint64_t work = script_alloc(s, build, MiB);

		if (kept)
			script_alloc(s, keep, kept);
		used += kept;
		script_set(s, TRACE_LEVEL_VSIZE, used + 4 * MiB);
		script_set(s, TRACE_LEVEL_RSS, used);
		script_set(s, TRACE_LEVEL_LIMIT_AS, LIMIT);
		script_sample(s);
		script_release(s, work);
		script_wait(s, TURN_NS);
	}
	return s;
}

static void judge(struct script *s)
{
	struct err err = {""};

	assert_int_equal(early_judge(script_feed(s), UINT64_MAX, &early, &err), 0);
	assert_int_equal(early.room.limit, LIMIT_AS);
	assert_int_equal(early.room.bytes, LIMIT);
}

static void done(struct script *s)
{
	early_fini(&early);
	script_free(s);
}

/* It has filled three quarters, and what grows will fill the rest: the leak is named. */
static void test_leak(void **state)
{
	struct script *s = serve(2 * MiB, MiB);

	judge(s);
	assert_int_equal(early.forecast.state, FORECAST_GROWS);
	assert_int_equal(early.as_if.verdict.cause, CAUSE_LEAK);
	assert_int_equal(early.cause, CAUSE_LEAK);
	assert_string_equal(early.as_if.verdict.blame.function, "remember");
	assert_true(early.confidence > 0.7);
	assert_true(early.confidence < early.as_if.verdict.confidence);
	done(s);
	(void)state;
}

/* Nothing grows. At its limit, that limit would be too low; with most of it free, who knows. */
static void test_steady(void **state)
{
	struct script *s = serve(LIMIT - 8 * MiB, 0);

	judge(s);
	assert_int_equal(early.as_if.verdict.cause, CAUSE_EXTERNAL);
	assert_int_equal(early.cause, CAUSE_EXTERNAL);
	done(s);

	s = serve(60 * MiB, 0);
	judge(s);
	assert_int_equal(early.as_if.verdict.cause, CAUSE_EXTERNAL);
	assert_int_equal(early.cause, CAUSE_UNKNOWN);
	assert_true(early.confidence == 0);
	done(s);
	(void)state;
}

/* What comes after the time is not known, and a process without a limit cannot run out. */
static void test_until(void **state)
{
	struct script *s = serve(2 * MiB, MiB);
	uint64_t half = script_now(s) / 2;
	struct err err = {""};

	assert_int_equal(early_judge(script_feed(s), half, &early, &err), 0);
	assert_true(early.live_bytes > 75 * MiB && early.live_bytes < 90 * MiB);
	assert_true(early.as_if.model->run.last_ns <= half);
	done(s);

	s = script_new();
	script_alloc(s, script_stack(s, "main;work"), MiB);
	assert_int_equal(early_judge(script_feed(s), script_now(s), &early, &err), 1);
	script_free(s);
	(void)state;
}

/* The stacks of threads fill the address space, and what they hold in blocks is next to nothing. */
static void test_threads(void **state)
{
	struct script *s = script_new();
	uint32_t starts, build;
	uint64_t used = 24 * MiB;

	starts = script_stack(s, "main;accept;pthread_create@/usr/include/c++/12/thread:1");
	build = script_stack(s, "main;accept;prompt");
	script_alloc(s, script_stack(s, "main;start;load"), 2 * MiB);
	for (unsigned i = 0; i < TURNS; i++) {
		script_alloc(s, starts, 288);
		script_release(s, script_alloc(s, build, MiB / 4));
		used += MiB;
		script_set(s, TRACE_LEVEL_VSIZE, used);
		script_set(s, TRACE_LEVEL_RSS, 4 * MiB);
		script_set(s, TRACE_LEVEL_LIMIT_AS, LIMIT);
		script_sample(s);
		script_wait(s, TURN_NS);
	}
	judge(s);
	assert_int_equal(early.forecast.state, FORECAST_GROWS);
	assert_true(early.forecast.rate > 0.8e9 * MiB / TURN_NS);
	assert_int_equal(early.cause, CAUSE_LEAK);
	assert_string_equal(early.as_if.verdict.blame.function, "accept");
	done(s);
	(void)state;
}

static void test_confidence(void **state)
{
	struct forecast none = {.state = FORECAST_STEADY},
			grows = {.state = FORECAST_GROWS, .seconds = 10, .since = 90};
	double steady = early_confidence(CAUSE_LEAK, 0.9, 0.5, &none);

	/* A full limit leaves nothing open. */
	for (enum cause c = CAUSE_UNKNOWN; c < CAUSE_COUNT; c++)
		assert_true(fabs(early_confidence(c, 0.9, 1, &grows) - 0.9) < 1e-9);
	assert_true(fabs(early_confidence(CAUSE_EXTERNAL, 0.9, 0.5, &grows) - 0.45) < 1e-9);
	assert_true(fabs(early_confidence(CAUSE_FRAGMENTATION, 0.9, 0.5, &grows) - 0.45) < 1e-9);
	assert_true(steady > 0.45 && steady < 0.9);
	/* Growth that has lasted nine tenths of its way will fill the last one. */
	assert_true(fabs(early_confidence(CAUSE_LEAK, 0.9, 0.5, &grows) - 0.9 * 0.95) < 1e-9);
	/* A load ends by itself. */
	assert_true(
	    fabs(early_confidence(CAUSE_OVERSIZED_MODEL, 0.9, 0.5, &grows) - steady) < 1e-9);
	/* Growth that has just begun tells no more than none. */
	grows.since = 1;
	assert_true(fabs(early_confidence(CAUSE_LEAK, 0.9, 0.5, &grows) - steady) < 1e-9);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_leak),
	    cmocka_unit_test(test_steady), cmocka_unit_test(test_until),
	    cmocka_unit_test(test_threads), cmocka_unit_test(test_confidence)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
