/* The interpreter's arenas: free bytes are its allocator's, used bytes belong to their makers. */
#include "verdict/judged.h"

#include "verdict/ledger/host_slack.h"

#define ARENA MiB

/* Each batch takes arenas and none goes back; `used`: bytes in use at the refusal by the
 * interpreter's account; 0: no account. */
static void batches(uint64_t used, struct verdict_result *r, struct script **out)
{
	struct script *s = script_new();
	uint32_t read = script_stack(s, "main@/app/m.py:9;read@/app/m.py:3");
	uint32_t keep = script_stack(s, "main@/app/m.py:9;keep@/app/m.py:5");
	uint32_t work = script_stack(s, "main@/app/m.py:9;work@/app/m.py:7");
	uint64_t arenas = 0;

	script_info(s, "python", "3.11.7");
	script_info(s, "exe", "/usr/bin/python3");
	for (unsigned i = 0; i < 120; i++) {
		script_map(s, read, ARENA, 0, TRACE_BACKING_ANON);
		script_alloc(s, keep, 4 * KiB);
		for (unsigned k = 0; k < 20; k++)
			script_release(s, script_alloc(s, work, 2 * MiB));
		arenas += ARENA;
		if (!used || i % 30)
			continue;
		script_set(s, TRACE_LEVEL_PYTHON_ARENAS, arenas);
		script_set(s, TRACE_LEVEL_PYTHON_USED, used * (i + 1) / 120);
		script_sample(s);
	}
	if (used) {
		script_set(s, TRACE_LEVEL_PYTHON_ARENAS, arenas);
		script_set(s, TRACE_LEVEL_PYTHON_USED, used);
	}
	script_set(s, TRACE_LEVEL_MALLOC_ARENA, 480 * KiB + 3 * MiB);
	script_set(s, TRACE_LEVEL_MALLOC_FREE, 3 * MiB);
	script_set(s, TRACE_LEVEL_LIMIT_AS, arenas + 4 * MiB);
	script_set(s, TRACE_LEVEL_VSIZE, arenas + 4 * MiB - 64 * KiB);
	script_failed(s, read, ARENA);
	script_exit(s, 1);
	judge_script(s, NULL, r);
	*out = s;
}

static void test_empty(void **state)
{
	struct verdict_result r;
	struct scene_slack slack;
	struct script *s;
	struct feed feed;

	batches(20 * MiB, &r, &s);
	feed = script_feed(s);
	assert_int_equal(r.verdict.cause, CAUSE_FRAGMENTATION);
	assert_string_equal(r.verdict.blame.function, "read");
	assert_non_null(strstr(r.verdict.summary, "arenas"));
	assert_in_range(row_of(&r.ledger, "interpreter arenas, free"), 99 * MiB, 101 * MiB);
	assert_int_equal(host_slack_at(r.model, UINT64_MAX), 3 * MiB + 100 * MiB);
	assert_int_equal(host_slack_at(r.model, 0), 0);
	/* At the account with 31 arenas; those with 61 and 91 are more than half. */
	assert_int_equal(host_slack_read(&feed, r.model, r.callsites, &r.ledger, &slack), 0);
	assert_int_equal(slack.arenas_steady, 20 * MiB * 31 / 120);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* For full arenas, and for those without an account, the makers of the remaining objects. */
static void test_full(void **state)
{
	struct verdict_result r;
	struct script *s;

	for (int i = 0; i < 2; i++) {
		batches(i ? 0 : 114 * MiB, &r, &s);
		assert_int_equal(r.verdict.cause, CAUSE_LEAK);
		assert_string_equal(r.verdict.blame.function, "read");
		assert_in_range(row_of(&r.ledger, "interpreter arenas, free"), i ? 0 : 5 * MiB,
		    i ? 0 : 7 * MiB);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* An extension asks the interpreter for objects, and so for arenas; its own mappings are none. */
static void test_extension(void **state)
{
	for (int own = 0; own < 2; own++) {
		struct script *s = script_new();
		uint32_t at = script_stack(s, own ? "main@/app/m.py:9;convert+0x40@/lib/numbers.so"
						  : "main@/app/m.py:9;convert+0x40@/lib/"
						    "numbers.so;take+0x8@/lib/libpython3.11.so");
		struct callsites *callsites;
		struct feed feed;
		struct model *m;
		struct event e;
		struct err err;

		script_info(s, "python", "3.11.7");
		script_info(s, "exe", "/usr/bin/python3");
		for (int i = 0; i < 8; i++)
			script_map(s, at, ARENA, 0, TRACE_BACKING_ANON);
		feed = script_feed(s);
		assert_int_equal(model_new(feed, &m, &err), 0);
		feed.rewind(feed.self, &err);
		while (feed.next(feed.self, &e, &err) == 1)
			assert_int_equal(model_apply(m, &e, &err), 0);
		model_finish(m);
		assert_int_equal(callsites_new(m, AT_END, &callsites, &err), 0);
		arenas_mark(m, callsites);
		assert_int_equal(callsites->count, 1);
		assert_int_equal(callsites->list[0].arena_share.any, !own);
		callsites_free(callsites);
		model_free(m);
		script_free(s);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_empty),
	    cmocka_unit_test(test_full),
	    cmocka_unit_test(test_extension),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
