/* A file system in memory is full: the cause, the owner, and the advice. */
#include "verdict/judged.h"

#include <signal.h>

#include "verdict/failure/volume.h"

#define SIZE (64 * MiB)

/* Requests that each leave a segment behind, until one finds no room. */
static struct script *leaking(uint64_t others, uint64_t *used)
{
	struct script *s = script_new();
	uint64_t segment = 512 * KiB;

	script_step(s, 50000);
	*used = others;
	for (uint64_t i = 1;; i++) {
		struct script_volume v = {39, SIZE, SIZE - *used, i, 0};

		for (int k = 0; k < 40; k++)
			script_release(
			    s, script_alloc(s, script_stack(s, "main;handle;parse"), 20 * KiB + i));
		script_map_shm(s, script_stack(s, "main;handle;publish"), segment, &v);
		if (v.free < segment)
			return s;
		*used += segment;
	}
}

static bool advises(const struct verdict_result *r, const char *words)
{
	for (size_t i = 0; i < r->verdict.fix_count; i++)
		if (strstr(r->verdict.fixes[i].text, words))
			return true;
	return false;
}

/* Killed by SIGBUS, or by a signal that nobody saw, as with a worker: each byte is charged to
 * one row. */
static void test_leak(void **state)
{
	for (int seen = 0; seen < 2; seen++) {
		struct verdict_result r;
		uint64_t used;
		struct script *s = leaking(4 * MiB + KiB * 4, &used);

		if (seen)
			script_killed(s, SIGBUS);
		judge_script(s, NULL, &r);
		assert_int_equal(r.verdict.cause, CAUSE_LEAK);
		assert_string_equal(r.verdict.blame.function, "publish");
		assert_int_equal(r.failure.kind, FAILURE_BUS);
		assert_int_equal(r.failure.limit, LIMIT_SHM);
		assert_int_equal(r.ledger.limit_bytes, SIZE);
		assert_int_equal(row_of(&r.ledger, "leaked"), SIZE - 4 * MiB - 4 * KiB);
		assert_int_equal(row_of(&r.ledger, "other files"), 4 * MiB + 4 * KiB);
		assert_int_equal(row_of(&r.ledger, "free"), 0);
		assert_int_equal(r.ledger.unaccounted, 0);
		assert_non_null(strstr(r.verdict.summary, "/dev/shm"));
		assert_true(advises(&r, "--shm-size") && advises(&r, "prefetch_factor"));
		assert_null(r.coverage.gap);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* Others fill it, and its own part is small: the remainder row says so. */
static void test_others(void **state)
{
	struct script *s = script_new();
	struct script_volume v = {39, SIZE, 3 * MiB, 1, 0};
	struct verdict_result r;

	for (uint64_t i = 0; i < 60; i++) {
		uint64_t a;

		v.file = i;
		a = script_map_shm(s, script_stack(s, "main;work"), 2 * MiB, &v);
		script_unmap(s, a, 2 * MiB);
	}
	v.free = MiB;
	script_map_shm(s, script_stack(s, "main;work"), 2 * MiB, &v);
	script_killed(s, SIGBUS);
	judge_script(s, NULL, &r);
	assert_int_equal(r.verdict.cause, CAUSE_EXTERNAL);
	assert_int_equal(row_of(&r.ledger, "other files"), SIZE - MiB);
	assert_int_equal(r.ledger.unaccounted, 0);
	assert_true(advises(&r, "ls -l /dev/shm"));
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* The same work all the time, which removes its files, finds less room than it had before: the file
 * system is too small, and there are no files to remove. */
static void test_steady(void **state)
{
	struct script *s = script_new();
	struct script_volume v = {39, SIZE, SIZE, 1, 0};
	struct verdict_result r;

	script_map_shm(s, script_stack(s, "main;load"), 40 * MiB, &v);
	for (v.file = 2; v.file < 200; v.file++) {
		v.free = 24 * MiB;
		script_unmap(
		    s, script_map_shm(s, script_stack(s, "main;work"), 20 * MiB, &v), 20 * MiB);
		script_wait(s, MiB);
	}
	v.free = 19 * MiB;
	script_map_shm(s, script_stack(s, "main;work"), 20 * MiB, &v);
	script_killed(s, SIGBUS);
	judge_script(s, NULL, &r);
	assert_int_equal(r.failure.limit, LIMIT_SHM);
	assert_int_equal(r.verdict.cause, CAUSE_EXTERNAL);
	assert_true(r.ranking.list[0].finding.steady);
	assert_true(r.ranking.list[0].finding.strength > 0.9);
	assert_false(advises(&r, "ls -l /dev/shm"));
	assert_true(advises(&r, "--shm-size"));
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* Each file that is not mapped any more still takes its bytes, so nobody removed one. Where more
 * was mapped than is in use, most were removed. */
static void test_left(void **state)
{
	static const struct {
		uint64_t unmapped, left;
	} of[] = {{48, 50}, {52, 50}, {120, 0}, {20, 0}};
	struct script *s = script_new();
	struct script_volume v = {39, SIZE, SIZE, 1, 0};
	struct verdict_result r;

	for (; v.file <= 25; v.file++, v.free -= 2 * MiB)
		script_unmap(
		    s, script_map_shm(s, script_stack(s, "main;work"), 2 * MiB, &v), 2 * MiB);
	v.free = MiB;
	script_map_shm(s, script_stack(s, "main;work"), 2 * MiB, &v);
	script_killed(s, SIGBUS);
	judge_script(s, NULL, &r);
	assert_int_equal(r.failure.limit, LIMIT_SHM);
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct volume_shares shares;

		r.failure.usage_bytes = 50 * MiB;
		r.tree.unmapped_volume = of[i].unmapped * MiB;
		shares = volume_shares(&r);
		assert_int_equal(shares.files, 50 * MiB);
		assert_int_equal(shares.left, of[i].left * MiB);
	}
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* Space for a file was refused, and nothing killed the process. */
static void test_refused(void **state)
{
	struct verdict_result r;
	uint64_t used;
	struct script *s = leaking(0, &used);
	struct event *e;

	script_set(s, TRACE_LEVEL_SHM_TOTAL, SIZE);
	script_set(s, TRACE_LEVEL_SHM_FREE, 300 * KiB);
	script_set(s, TRACE_LEVEL_SHM_DEVICE, 39);
	script_failed(s, script_stack(s, "main;handle;publish"), 512 * KiB);
	e = script_event(s, EV_FAILED, 0);
	e->size = 512 * KiB;
	e->api = TRACE_API_FALLOCATE;
	e->u.failed.result = 28;
	script_exit(s, 1);
	judge_script(s, NULL, &r);
	/* malloc's refusal came first and ended the process. */
	assert_int_not_equal(r.failure.limit, LIMIT_SHM);
	verdict_fini(&r);
	script_free(s);

	s = leaking(0, &used);
	e = script_event(s, EV_FAILED, 0);
	e->stack = script_stack(s, "main;handle;publish");
	e->size = 512 * KiB;
	e->api = TRACE_API_FALLOCATE;
	e->u.failed.why = TRACE_FAIL_ERRNO;
	e->u.failed.result = 28;
	script_exit(s, 1);
	judge_script(s, NULL, &r);
	assert_int_equal(r.failure.limit, LIMIT_SHM);
	assert_int_equal(r.failure.kind, FAILURE_HOST_ALLOC);
	assert_int_equal(r.failure.requested_bytes, 512 * KiB);
	assert_int_equal(r.verdict.cause, CAUSE_LEAK);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* A SIGBUS for another reason: there was room; or no such file system; or another signal. */
static void test_innocent(void **state)
{
	static const struct {
		int signal;
		uint64_t free, written;
	} of[] = {{SIGBUS, 40 * MiB, 0}, {SIGBUS, 4 * MiB, 16 * MiB}, {SIGSEGV, MiB, 0},
	    {SIGKILL, MiB, 0}, {0, MiB, 0},
	    /* Killed from outside with no request in flight, while it was full. */
	    {-1, 0, 16 * MiB}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct script *s = script_new();
		struct script_volume v = {39, SIZE, of[i].free, 1, of[i].written};
		struct verdict_result r;

		script_map_shm(s, script_stack(s, "main;segment"), 16 * MiB, &v);
		if (of[i].signal > 0)
			script_killed(s, of[i].signal);
		else if (!of[i].signal)
			script_exit(s, 0);
		judge_script(s, NULL, &r);
		assert_int_not_equal(r.failure.limit, LIMIT_SHM);
		assert_null(r.volume);
		assert_null(r.coverage.gap);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* It ended badly while it was full, which need not be the reason: a cause is required. */
static void test_ended_badly(void **state)
{
	for (int leaks = 0; leaks < 2; leaks++) {
		struct verdict_result r;
		uint64_t used;
		struct script *s = leaks ? leaking(0, &used) : script_new();
		struct script_volume v = {39, SIZE, SIZE, 1, 0};

		if (!leaks)
			for (int i = 0; i < 2000; i++)
				script_release(
				    s, script_alloc(s, script_stack(s, "main;work"), 64 * KiB));
		if (!leaks)
			script_map_shm(s, script_stack(s, "main;start"), MiB, &v);
		script_set(s, TRACE_LEVEL_SHM_TOTAL, SIZE);
		script_set(s, TRACE_LEVEL_SHM_FREE, 0);
		script_set(s, TRACE_LEVEL_SHM_DEVICE, 39);
		script_sample(s);
		script_exit(s, 1);
		judge_script(s, NULL, &r);
		if (leaks)
			assert_int_equal(r.verdict.cause, CAUSE_LEAK);
		else
			assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
		assert_int_equal(r.failure.limit == LIMIT_SHM, leaks);
		assert_int_equal(r.volume != NULL, leaks);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_leak),
	    cmocka_unit_test(test_others),
	    cmocka_unit_test(test_steady),
	    cmocka_unit_test(test_left),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_innocent),
	    cmocka_unit_test(test_ended_badly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
