/* SIGKILL: the sender, by counters and by what still rose; and the answer when nobody knows. */
#include "verdict/judged.h"

#include "verdict/failure/kill.h"
#include "verdict/subject.h"

static struct supervised outside;

/* `whyoom run` saw the SIGKILL, and the counts of OOM kills at both ends. */
static void watched(uint64_t group, uint64_t machine)
{
	memset(&outside, 0, sizeof(outside));
	timeline_init(&outside.resident);
	outside.ended = outside.finished = true;
	outside.how = TRACE_END_SIGNAL;
	outside.code = 9;
	levels_set(&outside.first, TRACE_LEVEL_CG_OOM_KILL, 1, 0);
	levels_set(&outside.last, TRACE_LEVEL_CG_OOM_KILL, 1 + group, 1);
	levels_set(&outside.first, TRACE_LEVEL_SYS_OOM_KILL, 40, 0);
	levels_set(&outside.last, TRACE_LEVEL_SYS_OOM_KILL, 40 + machine, 1);
}

static void forget(uint32_t key)
{
	outside.first.known[key] = outside.last.known[key] = false;
}

static void work(struct script *s, int times)
{
	for (int i = 0; i < times; i++)
		script_release(s, script_alloc(s, script_stack(s, "main;serve;answer"), 3 * MiB));
}

/* Loads, then serves at one level. */
static struct script *flat(void)
{
	struct script *s = script_new();

	for (int i = 0; i < 40; i++)
		script_alloc(s, script_stack(s, "main;load"), 2 * MiB);
	work(s, 3000);
	script_killed(s, 9);
	return s;
}

static struct script *leaking(void)
{
	struct script *s = script_new();

	for (int i = 0; i < 3000; i++) {
		script_alloc(s, script_stack(s, "main;serve;remember"), 100 * KiB);
		work(s, 1);
	}
	script_killed(s, 9);
	return s;
}

static void end(struct script *s, struct verdict_result *r)
{
	verdict_fini(r);
	script_free(s);
}

/* The kernel's log names it: neither counters nor growth are needed. */
static void test_named_by_the_log(void **state)
{
	struct script *s = flat();
	struct feed feed = script_feed(s);
	struct failure_view failure = {0};
	struct kill_view kill;
	struct err err = {""};
	struct model *m;

	watched(0, 0);
	assert_int_equal(subject_model(feed, &m, &err), 0);
	kill_read(m, &outside, false, &failure, &kill);
	assert_int_equal(failure.kind, FAILURE_NONE);
	kill_read(m, &outside, true, &failure, &kill);
	assert_int_equal(failure.kind, FAILURE_OOM_KILL);
	assert_non_null(strstr(failure.kill_evidence, "log"));
	model_free(m);
	script_free(s);
}

static void test_flat(void **state)
{
	struct verdict_result r;
	struct script *s = flat();

	/* Watched, and no count rose: something else killed it. */
	watched(0, 0);
	judge_script(s, &outside, &r);
	assert_true(r.kill.killed && r.kill.seen && !r.kill.rising);
	assert_int_equal(r.kill.counter, KILL_COUNTER_QUIET);
	assert_int_equal(r.failure.kind, FAILURE_NONE);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	assert_true(r.verdict.confidence >= 0.5 && r.verdict.confidence < 0.9);
	assert_non_null(strstr(r.verdict.summary, "SIGKILL"));
	assert_non_null(strstr(r.failure.kill_evidence, "not by the kernel"));
	end(s, &r);

	/* A kill in another container does not count for this group. */
	s = flat();
	watched(0, 1);
	judge_script(s, &outside, &r);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	end(s, &r);

	/* Without a count of the group's own, the kill may have been this process. */
	s = flat();
	forget(TRACE_LEVEL_CG_OOM_KILL);
	judge_script(s, &outside, &r);
	assert_int_equal(r.kill.counter, KILL_COUNTER_ROSE);
	assert_int_equal(r.verdict.cause, CAUSE_UNKNOWN);
	assert_non_null(strstr(r.verdict.next, "dmesg"));
	end(s, &r);

	/* The supervisor was killed with it: its last sample is not the end's. */
	s = flat();
	watched(0, 0);
	outside.finished = false;
	judge_script(s, &outside, &r);
	assert_int_equal(r.kill.counter, KILL_COUNTER_UNSEEN);
	assert_int_equal(r.verdict.cause, CAUSE_UNKNOWN);
	assert_float_equal(r.verdict.confidence, 0, 0);
	end(s, &r);

	s = flat();
	judge_script(s, NULL, &r);
	assert_int_equal(r.verdict.cause, CAUSE_UNKNOWN);
	assert_non_null(strstr(r.verdict.next, "whyoom run"));
	end(s, &r);
	(void)state;
}

static void test_rising(void **state)
{
	struct verdict_result r;
	struct script *s = leaking();

	/* A daemon's kill looks like this: the kernel counted nothing. */
	watched(0, 0);
	judge_script(s, &outside, &r);
	assert_true(r.kill.rising);
	assert_true(r.kill.live_late > r.kill.live_early);
	assert_int_equal(r.failure.kind, FAILURE_OOM_KILL);
	assert_non_null(strstr(r.failure.kill_evidence, "earlyoom"));
	assert_int_equal(r.verdict.cause, CAUSE_LEAK);
	end(s, &r);

	s = leaking();
	judge_script(s, NULL, &r);
	assert_int_equal(r.failure.kind, FAILURE_OOM_KILL);
	assert_int_equal(r.kill.counter, KILL_COUNTER_UNSEEN);
	assert_int_equal(r.verdict.cause, CAUSE_LEAK);
	end(s, &r);

	/* It rose long ago and was idle since: the samples from outside tell. */
	s = leaking();
	watched(0, 0);
	outside.ended_ns = 20 * script_now(s);
	judge_script(s, &outside, &r);
	assert_false(r.kill.rising);
	assert_int_equal(r.failure.kind, FAILURE_NONE);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	end(s, &r);
	(void)state;
}

/* One large block, acquired early and filled until the kill: only resident memory rises. */
static void test_resident_rises(void **state)
{
	struct verdict_result r;
	struct script *s = script_new();
	uint64_t now;

	work(s, 1000);
	script_alloc(s, script_stack(s, "main;serve;matrix"), 900 * MiB);
	script_killed(s, 9);
	now = script_now(s);
	watched(0, 0);
	outside.ended_ns = 8 * now;
	for (uint64_t i = 0; i <= 8; i++)
		timeline_at(&outside.resident, i * now, 0)->rss = (10 + 50 * i) * MiB;
	levels_set(&outside.last, TRACE_LEVEL_RSS, 10 * MiB, now / 2);
	levels_set(&outside.last, TRACE_LEVEL_RSS_ANON, 6 * MiB, now / 2);
	levels_set(&outside.last, TRACE_LEVEL_RSS_FILE, 4 * MiB, now / 2);
	levels_set(&outside.last, TRACE_LEVEL_RSS_PEAK, 420 * MiB, 8 * now);
	judge_script(s, &outside, &r);
	assert_true(r.kill.rising);
	assert_int_equal(r.verdict.cause, CAUSE_OVERSIZED_INTERMEDIATE);
	assert_string_equal(r.verdict.blame.function, "matrix");
	/* The kernel's count at the end, not a guess from the last sample. */
	assert_int_equal(r.failure.usage_bytes, 420 * MiB);
	assert_int_equal(r.ledger.unaccounted, 0);
	end(s, &r);
	(void)state;
}

/* Bursts come and go and leave memory resident: until the kill, or long over by then. */
static void test_held(void **state)
{
	for (int still = 0; still < 2; still++) {
		struct verdict_result r;
		struct script *s = script_new();
		uint64_t now;

		for (int i = 0; i < 100; i++) {
			uint64_t burst[40];

			for (int k = 0; k < 40; k++)
				burst[k] =
				    script_alloc(s, script_stack(s, "main;serve;burst"), MiB);
			for (int k = 0; k < 40; k++)
				script_release(s, burst[k]);
		}
		script_killed(s, 9);
		now = script_now(s);
		watched(0, 0);
		outside.ended_ns = now;
		for (uint64_t i = 0; i <= 16; i++)
			timeline_at(&outside.resident, i * now / 16, 0)->rss =
			    (50 + 10 * (still || i < 12 ? i : 12)) * MiB;
		levels_set(&outside.last, TRACE_LEVEL_RSS, still ? 210 * MiB : 170 * MiB, now);
		judge_script(s, &outside, &r);
		assert_int_equal(r.kill.rising, still);
		assert_int_equal(r.verdict.cause, still ? CAUSE_UNKNOWN : CAUSE_HEALTHY);
		end(s, &r);
	}
	(void)state;
}

/* Every step builds a text of all kept items, larger each time; the kill falls between two. */
static void test_between_two_steps(void **state)
{
	struct verdict_result r;
	struct script *s = script_new();
	uint64_t kept = 0;

	for (int i = 0; i < 30; i++) {
		uint64_t text;

		script_alloc(s, script_stack(s, "main;turn;remember"), MiB);
		kept += MiB;
		for (int k = 0; k < 3; k++) {
			text = script_alloc(s, script_stack(s, "main;turn;prompt"), 4 * kept);
			script_wait(s, 100000u * (uint64_t)(i + 1));
			script_release(s, text);
		}
		script_wait(s, 200000u * (uint64_t)(i + 1));
	}
	script_killed(s, 9);
	watched(0, 0);
	judge_script(s, &outside, &r);
	assert_true(script_live(s) < r.model->peak.bytes / 2);
	assert_true(r.kill.rising);
	assert_int_equal(r.failure.kind, FAILURE_OOM_KILL);
	assert_int_equal(r.verdict.cause, CAUSE_PROMPT_GROWTH);
	assert_string_equal(r.verdict.blame.function, "prompt");
	end(s, &r);
	(void)state;
}

/* Killed as it starts up: memory rises, in no known shape. */
static void test_rising_without_a_shape(void **state)
{
	struct verdict_result r;
	struct script *s = script_new();
	char name[40];

	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "main;import;module%d", i);
		script_alloc(s, script_stack(s, name), 200 * KiB);
	}
	script_killed(s, 9);
	watched(0, 0);
	judge_script(s, &outside, &r);
	assert_true(r.kill.rising);
	assert_int_equal(r.verdict.cause, CAUSE_UNKNOWN);
	assert_non_null(strstr(r.verdict.summary, "rising"));
	assert_non_null(r.verdict.next);
	end(s, &r);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_named_by_the_log),
	    cmocka_unit_test(test_flat),
	    cmocka_unit_test(test_rising),
	    cmocka_unit_test(test_resident_rises),
	    cmocka_unit_test(test_held),
	    cmocka_unit_test(test_between_two_steps),
	    cmocka_unit_test(test_rising_without_a_shape),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
