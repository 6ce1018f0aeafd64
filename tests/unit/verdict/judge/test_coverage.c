/* When the recording is too little for a verdict. */
#include "verdict/judged.h"

#include <signal.h>

/* Requests whose work comes and goes, and which leave 100 KiB each. */
static void leak(struct script *s)
{
	for (int i = 0; i < 2000; i++) {
		script_alloc(s, script_stack(s, "main;leak"), 100 * KiB);
		script_release(s, script_alloc(s, script_stack(s, "main;work"), 50 * KiB));
	}
}

static void test_gaps(void **state)
{
	struct verdict_result r;
	struct script *s;

	/* Nothing at all. */
	s = script_new();
	script_sample(s);
	script_exit(s, 0);
	judge_script(s, NULL, &r);
	assert_int_equal(r.verdict.cause, CAUSE_UNKNOWN);
	assert_non_null(r.coverage.gap);
	verdict_fini(&r);
	script_free(s);

	/* With losses, a run cannot be called healthy; a failure's shape may still be clear. */
	for (int failed = 0; failed < 2; failed++) {
		s = script_new();
		leak(s);
		script_facts(s)->dropped_total = 400;
		if (failed) {
			script_set(s, TRACE_LEVEL_LIMIT_AS, 210 * MiB);
			script_set(s, TRACE_LEVEL_VSIZE, 209 * MiB);
			script_failed(s, script_stack(s, "main;leak"), 2 * MiB);
		}
		script_exit(s, failed);
		judge_script(s, NULL, &r);
		assert_int_equal(r.verdict.cause, failed ? CAUSE_LEAK : CAUSE_UNKNOWN);
		assert_false(r.coverage.complete);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* A full file system behind shared memory kills the writer and refuses nothing. */
static void test_bus_error(void **state)
{
	for (int shared = 0; shared < 2; shared++)
		for (int signal = SIGSEGV; signal; signal = signal == SIGSEGV ? SIGBUS : 0) {
			struct script *s = script_new();
			struct verdict_result r;

			for (int i = 0; i < 100; i++)
				script_map(s, script_stack(s, "main;segment"), MiB,
				    shared ? TRACE_MAP_SHARED : 0,
				    shared ? TRACE_BACKING_SHM : TRACE_BACKING_ANON);
			script_killed(s, signal);
			judge_script(s, NULL, &r);
			if (shared && signal == SIGBUS) {
				assert_int_equal(r.verdict.cause, CAUSE_UNKNOWN);
				assert_non_null(strstr(r.coverage.gap, "/dev/shm"));
			} else {
				assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
			}
			verdict_fini(&r);
			script_free(s);
		}
	(void)state;
}

static void test_enough(void **state)
{
	struct verdict_result r;
	struct script *s = script_new();

	/* Much was resident, and released long ago: it was seen when it was acquired. */
	script_release(s, script_alloc(s, script_stack(s, "main;a"), 500 * MiB));
	script_set(s, TRACE_LEVEL_RSS, 510 * MiB);
	script_set(s, TRACE_LEVEL_RSS_ANON, 500 * MiB);
	script_sample(s);
	script_exit(s, 0);
	judge_script(s, NULL, &r);
	assert_null(r.coverage.gap);
	assert_true(r.coverage.complete);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* Much is resident and was never acquired: the recorder's own, with hundreds of threads, or that of
 * an allocator that nobody saw. */
static void test_own_memory(void **state)
{
	for (int own = 0; own < 2; own++) {
		struct script *s = script_new();
		struct verdict_result r;

		script_alloc(s, script_stack(s, "main;work"), 20 * MiB);
		script_set(s, TRACE_LEVEL_RSS, 110 * MiB);
		script_set(s, TRACE_LEVEL_RSS_ANON, 80 * MiB);
		script_set(s, TRACE_LEVEL_WHYOOM_ANON, own ? 40 * MiB : MiB);
		script_sample(s);
		script_exit(s, 0);
		judge_script(s, NULL, &r);
		assert_int_equal(r.coverage.gap == NULL, own);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* Memory that was resident when a forked process began is charged to its parent; any other was
 * acquired unseen. */
static void test_inherited(void **state)
{
	for (int forked = 0; forked < 2; forked++) {
		struct script *s = script_new();
		struct verdict_result r;

		script_facts(s)->forked = forked;
		script_set(s, TRACE_LEVEL_RSS, 210 * MiB);
		script_set(s, TRACE_LEVEL_RSS_ANON, 200 * MiB);
		script_sample(s);
		script_alloc(s, script_stack(s, "main;work"), 50 * MiB);
		script_set(s, TRACE_LEVEL_RSS, 260 * MiB);
		script_set(s, TRACE_LEVEL_RSS_ANON, 250 * MiB);
		script_sample(s);
		script_exit(s, 0);
		judge_script(s, NULL, &r);
		assert_int_equal(r.coverage.gap == NULL, forked);
		assert_int_equal(
		    row_of(&r.ledger, "inherited from the parent"), forked ? 200 * MiB : 0);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* Memory that came after malloc's account may be its free lists, up to the amount acquired
 * since; more has an unseen owner. */
static void test_since_malloc_was_asked(void **state)
{
	for (int seen = 0; seen < 2; seen++) {
		struct event_level levels[] = {{TRACE_LEVEL_MALLOC_ARENA, 12 * MiB},
		    {TRACE_LEVEL_MALLOC_MMAP, 0}, {TRACE_LEVEL_MALLOC_FREE, MiB}};
		struct script *s = script_new();
		uint32_t work = script_stack(s, "main;work");
		struct verdict_result r;
		struct event *e;

		script_alloc(s, work, 10 * MiB);
		e = script_event(s, EV_LEVEL, TRACE_SPACE_HOST);
		e->levels = levels;
		e->level_count = 3;
		for (int i = 0; i < (seen ? 400 : 40); i++)
			script_release(s, script_alloc(s, work, MiB));
		script_set(s, TRACE_LEVEL_RSS, 410 * MiB);
		script_set(s, TRACE_LEVEL_RSS_ANON, 400 * MiB);
		script_sample(s);
		script_exit(s, 0);
		judge_script(s, NULL, &r);
		assert_int_equal(r.coverage.gap == NULL, seen);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* Rights were dropped half-way and recording stopped: the report names that reason, and advises
 * no disk. */
static void test_rights(void **state)
{
	struct script *s = script_new();
	uint32_t work = script_stack(s, "main;work");
	struct verdict_result r;
	struct trace_facts *f = script_facts(s);

	for (int i = 0; i < 100; i++)
		script_alloc(s, work, 100 * KiB);
	f->dropped[TRACE_DROP_RIGHTS] = f->dropped_total = 4000;
	f->dropped_bytes = 390 * MiB;
	f->rights.any = true;
	f->rights.given_up_ns[TRACE_RIGHT_USER] = 1000;
	f->rights.stopped_ns = 2000;
	f->rights.reason = TRACE_RIGHT_USER;
	script_set(s, TRACE_LEVEL_RSS, 410 * MiB);
	script_set(s, TRACE_LEVEL_RSS_ANON, 400 * MiB);
	script_sample(s);
	script_exit(s, 0);
	judge_script(s, NULL, &r);
	assert_int_equal(r.verdict.cause, CAUSE_UNKNOWN);
	assert_non_null(strstr(r.verdict.summary, "recording stopped after"));
	assert_non_null(strstr(r.verdict.summary, "the user (setuid)"));
	assert_true(ledger_get(&r.ledger, LEDGER_UNRECORDED) > 300 * MiB);
	assert_int_equal(ledger_get(&r.ledger, LEDGER_UNSPLIT), 0);
	assert_true(ledger_adds_up(&r.ledger));
	for (uint32_t i = 0; i < r.verdict.fix_count; i++)
		assert_null(strstr(r.verdict.fixes[i].text, "disk"));
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* Who used a GPU that was not recorded is not healthy; a failure on the host is as clear as before.
 */
static void test_gpu_missing(void **state)
{
	enum { DRIVER = 1, RECORDED = 2, NVML = 4, FAILED = 8 };

	for (int how = 0; how < 16; how++) {
		bool missing = how & (DRIVER | NVML) && !(how & RECORDED);
		struct script *s = script_new();
		struct verdict_result r;

		leak(s);
		script_facts(s)->cuda_driver = how & DRIVER;
		if (how & RECORDED)
			script_info(s, "cuda.driver", "/usr/lib/libcuda.so.1");
		if (how & NVML) {
			struct event *e = script_event(s, EV_OUTSIDE, 0);

			e->u.device.total = 1000 * MiB;
			e->u.device.own = 300 * MiB;
			e->u.device.own_known = e->u.device.named = true;
		}
		if (how & FAILED) {
			script_set(s, TRACE_LEVEL_LIMIT_AS, 210 * MiB);
			script_set(s, TRACE_LEVEL_VSIZE, 209 * MiB);
			script_failed(s, script_stack(s, "main;leak"), 2 * MiB);
		}
		script_exit(s, how & FAILED ? 1 : 0);
		judge_script(s, NULL, &r);
		assert_int_equal(r.verdict.cause, how & FAILED ? CAUSE_LEAK
						  : missing    ? CAUSE_UNKNOWN
							       : CAUSE_HEALTHY);
		assert_int_equal(strstr(r.verdict.summary, "the GPU was not recorded") != NULL,
		    missing && !(how & FAILED));
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_gaps),
	    cmocka_unit_test(test_bus_error), cmocka_unit_test(test_enough),
	    cmocka_unit_test(test_own_memory), cmocka_unit_test(test_inherited),
	    cmocka_unit_test(test_since_malloc_was_asked), cmocka_unit_test(test_rights),
	    cmocka_unit_test(test_gpu_missing)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
