/* How much was left when a process was killed, whether it grew, and when memory would have been
 * full. */
#include "verdict/judged.h"

#include "verdict/failure/kill.h"
#include "verdict/subject.h"

static struct supervised outside;

/* `whyoom run` saw the kill, no OOM kill counted, and the memory left on the machine. */
static void watched(struct script *s, uint64_t available, uint64_t total)
{
	uint64_t now = script_now(s);

	memset(&outside, 0, sizeof(outside));
	timeline_init(&outside.resident);
	outside.ended = outside.finished = true;
	outside.how = TRACE_END_SIGNAL;
	outside.code = 9;
	outside.ended_ns = now;
	levels_set(&outside.first, TRACE_LEVEL_CG_OOM_KILL, 1, 0);
	levels_set(&outside.last, TRACE_LEVEL_CG_OOM_KILL, 1, now);
	levels_set(&outside.last, TRACE_LEVEL_SYS_TOTAL, total, now);
	levels_set(&outside.last, TRACE_LEVEL_SYS_AVAILABLE, available, now);
}

/* A model of some parameters, then blocks that stay, at an even pace. */
static struct script *creeping(uint64_t base, int steps)
{
	struct script *s = script_new();

	for (uint64_t i = 0; i < 9; i++)
		script_alloc(s, script_stack(s, "main;load"), base / 12 + i % 3 * (base / 36));
	for (int i = 0; i < steps; i++) {
		script_alloc(s, script_stack(s, "main;serve;remember"), 100 * KiB);
		script_release(s, script_alloc(s, script_stack(s, "main;serve;answer"), MiB));
		script_wait(s, 1000000);
	}
	script_killed(s, 9);
	return s;
}

static void read_outlook(struct script *s, const struct supervised *seen, struct outlook *out)
{
	struct feed feed = script_feed(s);
	struct failure_view failure = {0};
	struct kill_view kill;
	struct err err = {""};
	struct model *m;

	assert_int_equal(subject_model(feed, &m, &err), 0);
	kill_read(m, seen, false, &failure, &kill);
	*out = kill.outlook;
	model_free(m);
}

static void test_nobody_looked(void **state)
{
	struct script *s = creeping(MiB, 2000);
	struct outlook o;

	read_outlook(s, NULL, &o);
	assert_false(o.known || o.plenty || o.grows);
	script_free(s);
	(void)state;
}

static void test_left(void **state)
{
	struct script *s = creeping(MiB, 2000);
	struct outlook o;

	watched(s, 20 * GiB, 24 * GiB);
	read_outlook(s, &outside, &o);
	assert_true(o.known && o.plenty && o.grows);
	assert_int_equal(o.memory, LIMIT_SYSTEM);
	assert_int_equal(o.left_bytes, 20 * GiB);

	/* A daemon may strike at that level. */
	watched(s, 3 * GiB, 24 * GiB);
	read_outlook(s, &outside, &o);
	assert_true(o.known && !o.plenty);

	/* The cgroup is the scarcer. */
	watched(s, 20 * GiB, 24 * GiB);
	levels_set(&outside.last, TRACE_LEVEL_CG_MAX, 1 * GiB, script_now(s));
	levels_set(&outside.last, TRACE_LEVEL_CG_CURRENT, 400 * MiB, script_now(s));
	read_outlook(s, &outside, &o);
	assert_true(o.plenty);
	assert_int_equal(o.memory, LIMIT_CGROUP);
	assert_int_equal(o.left_bytes, 624 * MiB);
	levels_set(&outside.last, TRACE_LEVEL_CG_CURRENT, 900 * MiB, script_now(s));
	read_outlook(s, &outside, &o);
	assert_true(o.known && !o.plenty);
	script_free(s);
	(void)state;
}

/* 100 KiB in some 1 ms: 1 GiB is full in about 10 s. */
static void test_forecast(void **state)
{
	struct script *s = creeping(MiB, 4000);
	struct outlook o;
	double pace = 4000.0 * 100 * KiB / ((double)script_now(s) / 1e9);
	double expected = (double)(1 * GiB) / pace * 1e9;

	watched(s, 20 * GiB, 24 * GiB);
	levels_set(&outside.last, TRACE_LEVEL_LIMIT_AS, 3 * GiB, script_now(s));
	levels_set(&outside.last, TRACE_LEVEL_VSIZE, 2 * GiB, script_now(s));
	read_outlook(s, &outside, &o);
	assert_int_equal(o.first, LIMIT_AS);
	assert_int_equal(o.first_bytes, 3 * GiB);
	assert_true(o.full_soonest_ns <= o.full_latest_ns);
	assert_true((double)o.full_soonest_ns < 1.1 * expected);
	assert_true((double)o.full_latest_ns > 0.9 * expected);
	script_free(s);
	(void)state;
}

/* Loads, then serves at one level: there is no growth to extrapolate. */
static void test_flat(void **state)
{
	struct script *s = script_new();
	struct verdict_result r;
	struct outlook o;

	for (int i = 0; i < 40; i++)
		script_alloc(s, script_stack(s, "main;load"), 2 * MiB);
	for (int i = 0; i < 3000; i++)
		script_release(s, script_alloc(s, script_stack(s, "main;answer"), 3 * MiB));
	script_killed(s, 9);
	watched(s, 20 * GiB, 24 * GiB);
	read_outlook(s, &outside, &o);
	assert_true(o.plenty && !o.grows);
	assert_int_equal(o.full_latest_ns, 0);
	judge_script(s, &outside, &r);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	assert_int_equal(r.failure.kind, FAILURE_NONE);
	assert_non_null(strstr(r.verdict.summary, "with 20.0 GiB free: memory had not run out"));
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* It grew when it was killed: which call site, and when memory would have been full. Also with
 * slow growth beside a far larger model. */
static void test_killed_by_hand(void **state)
{
	const uint64_t bases[] = {MiB, 4 * GiB};

	for (size_t i = 0; i < 2; i++) {
		struct script *s = creeping(bases[i], 2000);
		struct verdict_result r;

		watched(s, 15 * GiB, 24 * GiB);
		judge_script(s, &outside, &r);
		assert_true(kill_with_memory_left(&r.kill));
		assert_int_equal(r.kill.rising, i == 0);
		assert_int_equal(r.failure.kind, FAILURE_KILLED);
		assert_string_equal(failure_kind_name(r.failure.kind), "none");
		assert_int_equal(r.verdict.cause, CAUSE_LEAK);
		assert_string_equal(r.verdict.blame.function, "remember");
		assert_non_null(strstr(r.verdict.summary, "SIGKILL ended it"));
		assert_non_null(strstr(r.verdict.summary, "Memory had not run out: "));
		assert_non_null(strstr(r.verdict.summary, "leaked in remember"));
		assert_non_null(strstr(r.verdict.summary, "would have been full"));
		assert_true(r.verdict.fix_count > 0);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nobody_looked),
	    cmocka_unit_test(test_left),
	    cmocka_unit_test(test_forecast),
	    cmocka_unit_test(test_flat),
	    cmocka_unit_test(test_killed_by_hand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
