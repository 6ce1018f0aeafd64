/* Synthetic processes of the first causes, and their look-alikes: the verdict on each. */
#include <time.h>

#include "model/unit.h"

#include "model/script.h"
#include "report/format.h"
#include "verdict/failure/supervised.h"
#include "verdict/ledger/ledger.h"
#include "verdict/verdict.h"

static uint64_t seed = 88172645463325252u;

/* Start-up: tables that stay, and work that comes and goes. */
static void start_up(struct script *s)
{
	uint32_t tables = script_stack(s, "main;init"), work = script_stack(s, "main;init;parse");

	for (int i = 0; i < 200; i++) {
		script_alloc(s, tables, 64 + dice(&seed, 4000));
		script_release(s, script_alloc(s, work, 100 + dice(&seed, 9000)));
	}
}

/* What a request makes on the way, beside what it keeps. */
static void work_for(struct script *s, uint64_t kept)
{
	script_release(s, script_alloc(s, script_stack(s, "main;turn;work"), kept / 2));
}

static void address_space(struct script *s, uint64_t limit)
{
	uint64_t base = 40 * MiB;

	script_set(s, TRACE_LEVEL_LIMIT_AS, limit);
	script_set(s, TRACE_LEVEL_VSIZE, script_live(s) + script_live(s) / 50 + base);
	script_set(s, TRACE_LEVEL_VIRT_HEAP, script_live(s) + script_live(s) / 50);
	script_set(s, TRACE_LEVEL_VIRT_ANON, 8 * MiB);
	script_set(s, TRACE_LEVEL_VIRT_FILE, 31 * MiB);
	script_set(s, TRACE_LEVEL_VIRT_STACKS, 1 * MiB);
	script_set(s, TRACE_LEVEL_RSS_ANON, script_live(s) + 2 * MiB);
	script_set(s, TRACE_LEVEL_RSS, script_live(s) + 8 * MiB);
}

static bool fits(const struct script *s, uint64_t limit, uint64_t size)
{
	return script_live(s) + script_live(s) / 50 + 40 * MiB + size <= limit;
}

/* 0: it was refused, and the process died of it. */
static uint64_t ask(struct script *s, uint32_t stack, uint64_t size, uint64_t limit)
{
	if (fits(s, limit, size))
		return script_alloc(s, stack, size);
	address_space(s, limit);
	script_failed(s, stack, size);
	script_exit(s, 1);
	return 0;
}

struct outcome {
	struct verdict_result r;
};

static void judge(struct script *s, struct outcome *o)
{
	struct err err = {""};
	struct str text = {0};
	struct report_style style = {.columns = 80, .verbose = true};

	assert_int_equal(verdict_of_feed(script_feed(s), NULL, &o->r, &err), 0);
	assert_true(ledger_adds_up(&o->r.ledger));
	model_check(o->r.model);
	report_text(&(struct report_view){.result = &o->r}, &style, &text);
	if (getenv("SHOW"))
		printf("%s\n", str_text(&text));
	assert_non_null(strstr(str_text(&text), cause_name(o->r.verdict.cause)));
	str_free(&text);
}

static void done(struct script *s, struct outcome *o)
{
	verdict_fini(&o->r);
	script_free(s);
}

static void expect(const struct outcome *o, enum cause cause, const char *function)
{
	assert_int_equal(o->r.verdict.cause, cause);
	if (function) {
		assert_non_null(o->r.verdict.blame.function);
		assert_string_equal(o->r.verdict.blame.function, function);
	}
}

/* A turn keeps a message of constant size, and builds a prompt of all of them. */
static void history(struct script *s, uint64_t limit, uint64_t message, uint64_t noise)
{
	uint32_t keep = script_stack(s, "main;turn;remember"),
		 build = script_stack(s, "main;turn;prompt");
	uint32_t reply = script_stack(s, "main;turn;reply");
	uint64_t total = 0, prompt;

	start_up(s);
	for (;;) {
		uint64_t size = message + (noise ? dice(&seed, noise) : 0), work;

		if (!ask(s, keep, size, limit))
			return;
		total += size;
		prompt = ask(s, build, total, limit);
		if (!prompt)
			return;
		work = ask(s, reply, 20000 + dice(&seed, 3000), limit);
		if (!work)
			return;
		script_release(s, work);
		script_release(s, prompt);
		script_wait(s, 1000000);
	}
}

static void test_history(void **state)
{
	static const struct {
		uint64_t limit, message, noise;
	} of[] = {{512 * MiB, 1 * MiB, 0}, {512 * MiB, 100 * KiB, 300 * KiB},
	    {200 * MiB, 20 * KiB, 0}, {2048 * MiB, 8 * MiB, 4 * MiB}};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct script *s = script_new();
		struct outcome o;

		history(s, of[i].limit, of[i].message, of[i].noise);
		judge(s, &o);
		expect(&o, CAUSE_PROMPT_GROWTH, "prompt");
		assert_true(o.r.verdict.confidence >= 0.8);
		assert_int_equal(o.r.failure.kind, FAILURE_HOST_ALLOC);
		assert_int_equal(o.r.failure.limit, LIMIT_AS);
		done(s, &o);
	}
	(void)state;
}

/* Its twin: each turn keeps as much, and its buffer has one size. */
static void test_leak_of_equal_slope(void **state)
{
	static const uint64_t sizes[] = {1 * MiB, 100 * KiB, 5000};

	for (size_t i = 0; i < 3; i++) {
		struct script *s = script_new();
		struct outcome o;
		uint32_t keep = script_stack(s, "main;turn;remember");
		uint32_t build = script_stack(s, "main;turn;prompt");
		uint64_t limit = 256 * MiB;

		start_up(s);
		for (;;) {
			uint64_t work;

			if (!ask(s, keep, sizes[i], limit))
				break;
			work = ask(s, build, 3 * MiB + dice(&seed, MiB), limit);
			if (!work)
				break;
			script_release(s, work);
			script_wait(s, 1000000);
		}
		judge(s, &o);
		expect(&o, CAUSE_LEAK, "remember");
		assert_true(o.r.verdict.confidence >= 0.8);
		assert_int_equal(o.r.verdict.runner_up, o.r.ranking.count > 1
							    ? o.r.ranking.list[1].finding.cause
							    : CAUSE_STATE_RETENTION);
		done(s, &o);
	}
	(void)state;
}

/* A table of pointers doubles beside its targets; it must not pass for a growing prompt. */
static void test_leak_with_index(void **state)
{
	static const uint64_t sizes[] = {32, 48, 200};

	for (size_t i = 0; i < 3; i++) {
		struct script *s = script_new();
		struct outcome o;
		uint32_t node = script_stack(s, "main;handle;insert");
		uint32_t table = script_stack(s, "main;handle;insert;grow");
		uint64_t limit = 64 * MiB + 24 * MiB, count = 0, room = 64, array;

		start_up(s);
		array = script_alloc(s, table, room * 8);
		for (;;) {
			if (count == room) {
				uint64_t larger = ask(s, table, room * 2 * 8, limit);
				if (!larger)
					break;
				script_release(s, array);
				array = larger;
				room *= 2;
			}
			if (!ask(s, node, sizes[i], limit))
				break;
			work_for(s, sizes[i]);
			count++;
		}
		judge(s, &o);
		expect(&o, CAUSE_LEAK, "insert");
		done(s, &o);
	}
	(void)state;
}

/* One string that realloc() grows. */
static void test_growing_string(void **state)
{
	struct script *s = script_new();
	struct outcome o;
	uint32_t append = script_stack(s, "main;turn;append");
	uint64_t limit = 300 * MiB, size = 1000, text;

	start_up(s);
	text = script_alloc(s, append, size);
	for (;;) {
		size += 200 * KiB;
		if (!fits(s, limit, size - (size - 200 * KiB))) {
			address_space(s, limit);
			script_failed(s, append, size);
			script_exit(s, 134);
			break;
		}
		text = script_realloc(s, text, append, size);
	}
	judge(s, &o);
	expect(&o, CAUSE_PROMPT_GROWTH, "append");
	done(s, &o);
	(void)state;
}

static void steady(struct script *s, int turns)
{
	uint32_t work = script_stack(s, "main;serve;work");

	for (int i = 0; i < turns; i++) {
		uint64_t a = script_alloc(s, work, 1 * MiB + dice(&seed, MiB));
		script_wait(s, 1000000);
		script_release(s, a);
	}
}

static void test_one_huge_request(void **state)
{
	static const uint64_t huge[] = {3072 * MiB, 900 * MiB};

	for (size_t i = 0; i < 2; i++) {
		struct script *s = script_new();
		struct outcome o;
		uint32_t load = script_stack(s, "main;serve;load");

		start_up(s);
		for (int n = 0; n < 20; n++)
			script_alloc(s, script_stack(s, "main;init;weights"), 10 * MiB);
		steady(s, 500);
		ask(s, load, huge[i], 1024 * MiB);
		judge(s, &o);
		expect(&o, CAUSE_OVERSIZED_INTERMEDIATE, "load");
		assert_true(o.r.verdict.confidence >= 0.8);
		assert_int_equal(o.r.failure.requested_bytes, huge[i]);
		done(s, &o);
	}
	(void)state;
}

/* Several ways lead to the line: the report shows the refused request's, not that of the live
 * blocks. */
static void test_one_huge_request_by_its_own_way(void **state)
{
	struct script *s = script_new();
	uint32_t often = script_stack(s, "main;serve;embed;pack@/app/p.c:7"),
		 once = script_stack(s, "main;serve;export;pack@/app/p.c:7");
	bool through = false;
	struct outcome o;

	start_up(s);
	for (int n = 0; n < 20; n++)
		script_alloc(s, often, MiB);
	steady(s, 500);
	ask(s, once, 3072 * MiB, 1024 * MiB);
	judge(s, &o);
	expect(&o, CAUSE_OVERSIZED_INTERMEDIATE, "pack");
	for (size_t i = 0; i < o.r.verdict.blame.stack.count; i++)
		through |= strcmp(o.r.verdict.blame.stack.symbols[i].function, "export") == 0;
	assert_true(through);
	done(s, &o);
	(void)state;
}

/* A library's thread asked for it, for a thread that waits: the waiting line is to blame, and
 * the stack goes through both. */
static void test_one_huge_request_of_a_pool(void **state)
{
	struct script *s = script_new();
	uint32_t call = script_stack(s, "main;serve;query@/app/q.c:7;run@/usr/lib/libtable.so"),
		 join = script_stack(s, "start@/usr/lib/libtable.so;join@/usr/lib/libtable.so");
	bool through = false;
	struct outcome o;

	start_up(s);
	for (int n = 0; n < 20; n++)
		script_alloc(s, script_stack(s, "main;init;weights"), 10 * MiB);
	steady(s, 500);
	script_release(s, script_alloc(s, call, 1000));
	script_thread(s, 7, 0);
	ask(s, join, 3072 * MiB, 1024 * MiB);
	judge(s, &o);
	expect(&o, CAUSE_OVERSIZED_INTERMEDIATE, "query");
	for (size_t i = 0; i < o.r.verdict.blame.stack.count; i++)
		through |= strcmp(o.r.verdict.blame.stack.symbols[i].function, "join") == 0;
	assert_true(through);
	assert_string_equal(
	    o.r.verdict.blame.stack.symbols[o.r.verdict.blame.frame].function, "query");
	done(s, &o);
	(void)state;
}

/* The huge one was granted, and the next request did not fit. */
static void test_huge_block_then_small(void **state)
{
	struct script *s = script_new();
	struct outcome o;

	start_up(s);
	steady(s, 500);
	assert_int_not_equal(
	    ask(s, script_stack(s, "main;serve;matrix"), 900 * MiB, 1024 * MiB), 0);
	ask(s, script_stack(s, "main;serve;copy"), 200 * MiB, 1024 * MiB);
	judge(s, &o);
	expect(&o, CAUSE_OVERSIZED_INTERMEDIATE, NULL);
	done(s, &o);
	(void)state;
}

/* Many documents in one request, after a long steady state. */
static void test_pile_of_documents(void **state)
{
	struct script *s = script_new();
	struct outcome o;
	uint32_t load = script_stack(s, "main;serve;documents");

	start_up(s);
	steady(s, 3000);
	while (ask(s, load, 300 * KiB + dice(&seed, 100 * KiB), 512 * MiB))
		;
	judge(s, &o);
	expect(&o, CAUSE_OVERSIZED_INTERMEDIATE, "documents");
	done(s, &o);
	(void)state;
}

static void finish_well(struct script *s, uint64_t limit, struct outcome *o)
{
	address_space(s, limit);
	script_sample(s);
	script_exit(s, 0);
	judge(s, o);
	expect(o, CAUSE_HEALTHY, NULL);
	assert_int_equal(o->r.failure.kind, FAILURE_NONE);
	done(s, o);
}

static void test_healthy(void **state)
{
	struct script *s;
	struct outcome o;
	uint64_t cache[64] = {0}, prompt = 0;
	uint32_t entry, build;

	/* A warm cache that plateaus. */
	s = script_new();
	entry = script_stack(s, "main;lookup");
	start_up(s);
	for (int i = 0; i < 4000; i++) {
		uint64_t *slot = &cache[dice(&seed, 64)];
		if (*slot)
			script_release(s, *slot);
		*slot = script_alloc(s, entry, MiB);
	}
	finish_well(s, 512 * MiB, &o);

	/* A sawtooth: a history that is trimmed when it is full. */
	s = script_new();
	build = script_stack(s, "main;turn;prompt");
	start_up(s);
	for (int i = 0; i < 1000; i++) {
		if (prompt)
			script_release(s, prompt);
		prompt = script_alloc(s, build, (uint64_t)(i % 50 + 1) * 100 * KiB);
	}
	finish_well(s, 512 * MiB, &o);

	/* A large footprint that stays as it is. */
	s = script_new();
	start_up(s);
	for (int i = 0; i < 40; i++)
		script_alloc(s, script_stack(s, "main;load"), 10 * MiB);
	steady(s, 1000);
	finish_well(s, 512 * MiB, &o);

	/* A refused request that was repeated for less, and granted. */
	s = script_new();
	start_up(s);
	address_space(s, 512 * MiB);
	script_failed(s, script_stack(s, "main;probe"), 600 * MiB);
	script_alloc(s, script_stack(s, "main;probe"), 300 * MiB);
	steady(s, 1000);
	finish_well(s, 512 * MiB, &o);
	(void)state;
}

/* SIGKILL without a known limit: growth until the end tells, and its absence too. */
static void test_killed(void **state)
{
	struct script *s = script_new();
	struct outcome o;
	uint32_t keep = script_stack(s, "main;turn;remember");

	start_up(s);
	for (int i = 0; i < 3000; i++) {
		script_alloc(s, keep, 100 * KiB);
		work_for(s, 100 * KiB);
		if (i % 100 == 0) {
			script_set(s, TRACE_LEVEL_RSS, script_live(s) + 10 * MiB);
			script_set(s, TRACE_LEVEL_RSS_ANON, script_live(s) + 4 * MiB);
			script_sample(s);
		}
	}
	script_killed(s, 9);
	judge(s, &o);
	expect(&o, CAUSE_LEAK, "remember");
	assert_int_equal(o.r.failure.kind, FAILURE_OOM_KILL);
	done(s, &o);

	s = script_new();
	start_up(s);
	for (int i = 0; i < 40; i++)
		script_alloc(s, script_stack(s, "main;load"), 10 * MiB);
	steady(s, 2000);
	script_set(s, TRACE_LEVEL_RSS, 400 * MiB);
	script_set(s, TRACE_LEVEL_RSS_ANON, 400 * MiB);
	script_sample(s);
	script_killed(s, 9);
	judge(s, &o);
	/* Nobody watched for the sender. */
	expect(&o, CAUSE_UNKNOWN, NULL);
	assert_int_equal(o.r.failure.kind, FAILURE_NONE);
	assert_non_null(strstr(o.r.verdict.summary, "SIGKILL"));
	assert_non_null(strstr(o.r.verdict.next, "whyoom run"));
	done(s, &o);
	(void)state;
}

static void test_no_data_is_not_healthy(void **state)
{
	struct script *s = script_new();
	struct outcome o;

	script_exit(s, 0);
	judge(s, &o);
	expect(&o, CAUSE_UNKNOWN, NULL);
	assert_non_null(o.r.verdict.next);
	done(s, &o);

	/* Resident memory that no recorded call acquired. */
	s = script_new();
	start_up(s);
	script_set(s, TRACE_LEVEL_RSS, 900 * MiB);
	script_set(s, TRACE_LEVEL_RSS_ANON, 880 * MiB);
	script_sample(s);
	script_exit(s, 0);
	judge(s, &o);
	expect(&o, CAUSE_UNKNOWN, NULL);
	assert_non_null(o.r.coverage.gap);
	done(s, &o);
	(void)state;
}

/* Python's finalisation releases everything after the failure; the verdict is on the failure. */
static void test_released_after_failure(void **state)
{
	struct script *s = script_new();
	struct outcome o;
	uint32_t keep = script_stack(s, "main;turn;remember");
	uint64_t all[4000];
	int n = 0;

	start_up(s);
	while (n < 4000) {
		if (!fits(s, 200 * MiB, 100 * KiB)) {
			address_space(s, 200 * MiB);
			script_failed(s, keep, 100 * KiB);
			break;
		}
		all[n++] = script_alloc(s, keep, 100 * KiB);
		work_for(s, 100 * KiB);
	}
	while (n > 0)
		script_release(s, all[--n]);
	script_exit(s, 1);
	judge(s, &o);
	expect(&o, CAUSE_LEAK, "remember");
	done(s, &o);
	(void)state;
}

/* What is small beside threads' stacks is no cause. */
static void test_beside_stacks(void **state)
{
	static const uint64_t stacks[] = {8 * MiB, 80 * MiB};

	for (size_t n = 0; n < 2; n++) {
		struct script *s = script_new();
		struct outcome o;
		double leak = 0;

		start_up(s);
		for (int i = 0; i < 20; i++) {
			script_alloc(s, script_stack(s, "main;turn;remember"), 100 * KiB);
			work_for(s, 100 * KiB);
		}
		address_space(s, script_live(s) + 50 * MiB + stacks[n]);
		script_set(s, TRACE_LEVEL_VSIZE,
		    script_live(s) + script_live(s) / 50 + 40 * MiB + stacks[n]);
		script_set(s, TRACE_LEVEL_VIRT_THREADS, stacks[n]);
		script_set(s, TRACE_LEVEL_THREADS, 1 + stacks[n] / (8 * MiB));
		script_failed(s, script_stack(s, "main;turn;remember"), 20 * MiB);
		script_exit(s, 1);
		judge(s, &o);
		for (uint32_t i = 0; i < o.r.ranking.count; i++)
			if (o.r.ranking.list[i].finding.cause == CAUSE_LEAK)
				leak = o.r.ranking.list[i].finding.strength;
		assert_true(n ? leak > 0.1 && leak < 0.3 : leak > 0.9);
		done(s, &o);
	}
	(void)state;
}

/* What nobody can tell may be anybody's growth: where it is much of the limit, no cause is sure. */
static void test_beside_unaccounted(void **state)
{
	static const uint64_t untold[] = {10 * MiB, 200 * MiB};
	double sure[2];

	for (size_t n = 0; n < 2; n++) {
		struct script *s = script_new();
		struct outcome o;

		start_up(s);
		for (int i = 0; i < 600; i++) {
			script_alloc(s, script_stack(s, "main;turn;remember"), 100 * KiB);
			work_for(s, 100 * KiB);
		}
		address_space(s, script_live(s) + 50 * MiB + untold[n]);
		script_set(s, TRACE_LEVEL_MALLOC_ARENA, script_live(s));
		script_set(s, TRACE_LEVEL_MALLOC_MMAP, 0);
		script_set(s, TRACE_LEVEL_VSIZE, script_live(s) + 40 * MiB + untold[n]);
		script_failed(s, script_stack(s, "main;turn;remember"), 20 * MiB);
		script_exit(s, 1);
		judge(s, &o);
		sure[n] = o.r.ranking.list[0].confidence;
		assert_int_equal(o.r.ranking.list[0].finding.cause, CAUSE_LEAK);
		done(s, &o);
	}
	assert_true(sure[0] > 0.9 && sure[1] < 0.6);
	(void)state;
}

/* It ran for as long as it was seen, not only to its last event. */
static void test_seconds(void **state)
{
	static struct supervised outside;
	struct verdict_result r;
	struct timespec now;
	struct err err = {""};
	struct script *s = script_new();

	clock_gettime(CLOCK_MONOTONIC, &now);
	start_up(s);
	script_facts(s)->running = true;
	script_facts(s)->start_mono_ns = (uint64_t)now.tv_sec * 1000000000u - 5000000000u;
	assert_int_equal(verdict_of_feed(script_feed(s), NULL, &r, &err), 0);
	assert_int_equal(r.tree.processes[0].how, END_RUNNING);
	assert_true(r.tree.processes[0].seconds >= 5 && r.tree.processes[0].seconds < 600);
	verdict_fini(&r);

	script_facts(s)->running = false;
	timeline_init(&outside.resident);
	outside.ended = true;
	outside.how = TRACE_END_EXIT;
	outside.ended_ns = 7000000000u;
	assert_int_equal(verdict_of_feed(script_feed(s), &outside, &r, &err), 0);
	assert_float_equal(r.tree.processes[0].seconds, 7, 1e-6);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_seconds),
	    cmocka_unit_test(test_history),
	    cmocka_unit_test(test_leak_of_equal_slope),
	    cmocka_unit_test(test_leak_with_index),
	    cmocka_unit_test(test_growing_string),
	    cmocka_unit_test(test_one_huge_request),
	    cmocka_unit_test(test_one_huge_request_by_its_own_way),
	    cmocka_unit_test(test_one_huge_request_of_a_pool),
	    cmocka_unit_test(test_huge_block_then_small),
	    cmocka_unit_test(test_pile_of_documents),
	    cmocka_unit_test(test_healthy),
	    cmocka_unit_test(test_killed),
	    cmocka_unit_test(test_no_data_is_not_healthy),
	    cmocka_unit_test(test_released_after_failure),
	    cmocka_unit_test(test_beside_stacks),
	    cmocka_unit_test(test_beside_unaccounted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
