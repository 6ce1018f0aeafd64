/* Processes that were attached to: what came since is judged, and what was there before is a row.
 */
#include "verdict/judged.h"

#include "report/format.h"

#define LIMIT (1024 * MiB)

/* 100 ms of work for each request; the last bytes are given back. */
static void work(struct script *s, uint64_t bytes)
{
	script_release(s, script_alloc(s, script_stack(s, "main;serve;work"), bytes));
	script_wait(s, 100000000);
}

/* All levels at this moment: `before` bytes were in use in malloc at the attach, of which `freed`
 * are gone. */
static void measure(struct script *s, uint64_t before, uint64_t freed)
{
	uint64_t used = before - freed + script_live(s), base = 60 * MiB;

	script_set(s, TRACE_LEVEL_MALLOC_ARENA, before + script_live(s));
	script_set(s, TRACE_LEVEL_MALLOC_MMAP, 0);
	script_set(s, TRACE_LEVEL_MALLOC_USED, used);
	script_set(s, TRACE_LEVEL_MALLOC_FREE, before + script_live(s) - used);
	script_set(s, TRACE_LEVEL_BEFORE_FREED, freed);
	script_set(s, TRACE_LEVEL_LIMIT_AS, LIMIT);
	script_set(s, TRACE_LEVEL_VSIZE, before + script_live(s) + base);
	script_set(s, TRACE_LEVEL_DATA, before + script_live(s) + 20 * MiB);
	script_set(s, TRACE_LEVEL_RSS_ANON, before + script_live(s) + 20 * MiB);
	script_set(s, TRACE_LEVEL_RSS, before + script_live(s) + 30 * MiB);
}

static struct script *attach(uint64_t before)
{
	struct script *s = script_new();

	script_info(s, "attached", "11520000000000");
	measure(s, before, 0);
	script_sample(s);
	return s;
}

static void report(const struct verdict_result *r, struct str *text)
{
	struct report_style style = {.columns = 100, .verbose = true};

	report_text(&(struct report_view){.result = r}, &style, text);
	if (getenv("SHOW"))
		printf("%s\n", str_text(text));
}

static bool fits(const struct script *s, uint64_t before, uint64_t size)
{
	return before + script_live(s) + 60 * MiB + size <= LIMIT;
}

/* Each request leaves a block behind, until the rest of the limit is used up. */
static void leak(struct script *s, uint64_t before, uint64_t freed, uint64_t size)
{
	uint32_t stack = script_stack(s, "main;serve;remember");

	for (int i = 0; fits(s, before, size); i++) {
		script_alloc(s, stack, size);
		work(s, size / 2 + 1000);
		if (i % 64 == 0) {
			measure(s, before, freed);
			script_sample(s);
		}
	}
	measure(s, before, freed);
	script_failed(s, stack, size);
	script_exit(s, 1);
}

static void test_leak(void **state)
{
	static const uint64_t befores[] = {50 * MiB, 400 * MiB, 800 * MiB};

	for (size_t i = 0; i < sizeof(befores) / sizeof(*befores); i++) {
		uint64_t before = befores[i], freed = before / 10;
		struct script *s = attach(before);
		struct verdict_result r;
		struct str text = {0};

		leak(s, before, freed, 100 * KiB);
		judge_script(s, NULL, &r);
		report(&r, &text);
		assert_int_equal(r.verdict.cause, CAUSE_LEAK);
		assert_string_equal(r.verdict.blame.function, "remember");
		/* malloc's blocks, and 20 MiB of private memory beside them */
		assert_int_equal(row_of(&r.ledger, LEDGER_BEFORE), before - freed + 20 * MiB);
		assert_int_equal(row_of(&r.ledger, LEDGER_FREE_LISTS), freed);
		assert_int_equal(r.coverage.attach.there, before + 20 * MiB);
		assert_int_equal(r.coverage.attach.freed, freed);
		assert_true(llabs(r.ledger.unaccounted) < (long long)MiB);
		assert_non_null(strstr(str_text(&text), "attached after 3 h 12 min"));
		assert_non_null(strstr(str_text(&text), "Attached: 3 h 12 min after the start."));
		assert_non_null(strstr(str_text(&text), LEDGER_BEFORE));
		/* No phase of it is known, as its start was not seen. */
		assert_int_equal(r.flow.phases.count, 0);
		str_free(&text);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* The larger the part that nobody saw, the less sure. */
static void test_surer(void **state)
{
	double last = 1;

	for (uint64_t before = 50 * MiB; before <= 800 * MiB; before *= 4) {
		struct script *s = attach(before);
		struct verdict_result r;

		leak(s, before, 0, 100 * KiB);
		judge_script(s, NULL, &r);
		assert_int_equal(r.verdict.cause, CAUSE_LEAK);
		assert_true(r.verdict.confidence < last);
		last = r.verdict.confidence;
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* Most was there before, and the work since came and went: nobody can say why. */
static void test_steady(void **state)
{
	uint64_t before = 900 * MiB;
	struct script *s = attach(before);
	struct verdict_result r;
	struct str text = {0};

	for (int i = 0; i < 500; i++) {
		uint64_t a = script_alloc(s, script_stack(s, "main;serve;parse"), 3 * MiB);

		work(s, 20 * MiB);
		script_release(s, a);
	}
	measure(s, before, 0);
	script_failed(s, script_stack(s, "main;serve;work"), 80 * MiB);
	script_exit(s, 1);
	judge_script(s, NULL, &r);
	report(&r, &text);
	assert_int_equal(r.verdict.cause, CAUSE_UNKNOWN);
	assert_null(r.coverage.gap);
	assert_non_null(strstr(r.verdict.summary,
	    "920 MiB of the limit of 1.00 GiB (RLIMIT_AS) were there before whyoom came; attach "
	    "earlier, or start it with `whyoom run`"));
	assert_non_null(r.verdict.next);
	str_free(&text);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* The same events without an attach are a model that is loaded, or a pool; attached to, nobody
 * knows what came before, so neither is claimed. */
static void put_in_place(struct script *s, bool alike)
{
	uint32_t stack = script_stack(s, alike ? "main;build_pool" : "main;load_weights;read");
	uint64_t size = 32 * MiB;

	for (int i = 0; fits(s, 0, size); i++) {
		script_alloc(s, stack, size);
		if (!alike)
			size = (uint64_t)(8 + 8 * (i % 5)) * MiB;
	}
	measure(s, 0, 0);
	script_failed(s, stack, size);
	script_exit(s, 1);
}

static void test_needs_beginning(void **state)
{
	for (int alike = 0; alike < 2; alike++)
		for (int attached = 0; attached < 2; attached++) {
			struct script *s = attached ? attach(0) : script_new();
			enum cause expected = alike ? CAUSE_BATCH_PREALLOC : CAUSE_OVERSIZED_MODEL;
			struct verdict_result r;

			put_in_place(s, alike);
			judge_script(s, NULL, &r);
			assert_int_equal(r.verdict.cause, attached ? CAUSE_UNKNOWN : expected);
			assert_int_equal(
			    strstr(r.verdict.summary, "since the attach; only a recording from the "
						      "start, by `whyoom run`, tells") != NULL,
			    attached);
			assert_int_equal(row_of(&r.ledger, "weights") > 0, !attached && !alike);
			assert_int_equal(
			    row_of(&r.ledger, "preallocated pools") > 0, !attached && alike);
			verdict_fini(&r);
			script_free(s);
		}
	(void)state;
}

/* A cache that was full at the attach: what comes takes the place of what was there before, which
 * is not recorded one by one. It does not grow, though all that came since is still there. */
static void test_exchange(void **state)
{
	for (int exchanged = 0; exchanged < 2; exchanged++) {
		uint64_t before = 500 * MiB, freed = 0;
		struct script *s = attach(before);
		struct verdict_result r;

		for (int i = 0; i < 4000; i++) {
			script_alloc(s, script_stack(s, "main;serve;remember"), 100 * KiB);
			freed += exchanged ? 100 * KiB : 0;
			work(s, 50 * KiB);
			if (i % 50 == 0) {
				measure(s, before - freed, 0);
				script_set(s, TRACE_LEVEL_BEFORE_FREED, freed);
				script_sample(s);
			}
		}
		measure(s, before - freed, 0);
		script_set(s, TRACE_LEVEL_BEFORE_FREED, freed);
		script_set(s, TRACE_LEVEL_LIMIT_AS, before - freed + script_live(s) + 60 * MiB);
		script_failed(s, script_stack(s, "main;serve;answer"), 20 * MiB);
		script_exit(s, 1);
		judge_script(s, NULL, &r);
		assert_int_equal(r.verdict.cause == CAUSE_LEAK, !exchanged);
		if (exchanged)
			assert_true(r.verdict.confidence < 0.7);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

static void test_healthy(void **state)
{
	uint32_t stack;
	struct script *s = attach(300 * MiB);
	struct verdict_result r;

	stack = script_stack(s, "main;serve;parse");
	for (int i = 0; i < 500; i++) {
		uint64_t block = script_alloc(s, stack, 10 * MiB);

		measure(s, 300 * MiB, 0);
		script_sample(s);
		script_release(s, block);
		script_wait(s, 100000000);
	}
	script_exit(s, 0);
	judge_script(s, NULL, &r);
	assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
	assert_null(strstr(r.verdict.summary, "growing"));
	assert_non_null(strstr(r.verdict.summary, "at most 10.0 MiB were in use at once of what "
						  "came since the attach, beside 320 MiB from "
						  "before"));
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

/* A detach is no death: what grew meanwhile is told, and when it will be full. */
static void test_detached(void **state)
{
	for (int grows = 0; grows < 2; grows++) {
		struct script *s = attach(300 * MiB);
		struct verdict_result r;
		struct str text = {0};

		for (int i = 0; i < 2000; i++) {
			if (grows)
				script_alloc(s, script_stack(s, "main;serve;remember"), 100 * KiB);
			work(s, 50 * KiB);
			if (i % 50 == 0) {
				measure(s, 300 * MiB, 0);
				script_set(s, TRACE_LEVEL_SYS_TOTAL, 4096 * MiB);
				script_set(
				    s, TRACE_LEVEL_SYS_AVAILABLE, 2048 * MiB - script_live(s));
				script_sample(s);
			}
		}
		script_facts(s)->end_how = TRACE_END_DETACHED;
		judge_script(s, NULL, &r);
		report(&r, &text);
		assert_int_equal(r.failure.kind, FAILURE_NONE);
		assert_int_equal(r.verdict.cause, CAUSE_HEALTHY);
		assert_false(r.kill.killed);
		assert_non_null(strstr(str_text(&text), ", detached after 3 h "));
		assert_non_null(strstr(r.verdict.summary, "It was recorded for 3 min 20 s"));
		assert_int_equal(strstr(r.verdict.summary, "remember") != NULL, grows);
		assert_int_equal(strstr(r.verdict.summary, "will be full") != NULL, grows);
		str_free(&text);
		verdict_fini(&r);
		script_free(s);
	}
	(void)state;
}

/* What a device held at the first look, beside what others hold. */
static void test_device(void **state)
{
	struct script *s = attach(10 * MiB);
	uint32_t cuda = script_space(s, "cuda:0"), stack = script_stack(s, "main;serve;cache");
	uint64_t address = 0x700000000000, live = 0;
	struct verdict_result r;

	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 1024 * MiB, TRACE_LEVEL_DEV_TOTAL, 4096 * MiB);
	for (int i = 0; i < 100; i++) {
		script_space_alloc(s, cuda, stack, address, 10 * MiB);
		address += 10 * MiB;
		live += 10 * MiB;
		script_alloc(s, script_stack(s, "main;serve;host"), 1000);
		script_space_alloc(
		    s, cuda, script_stack(s, "main;serve;scratch"), 0x600000000000, MiB);
		script_space_free(s, cuda, 0x600000000000);
	}
	script_space_level(
	    s, cuda, TRACE_LEVEL_DEV_FREE, 1024 * MiB - live, TRACE_LEVEL_DEV_TOTAL, 4096 * MiB);
	script_space_failed(s, cuda, stack, 100 * MiB, 1);
	script_exit(s, 1);
	judge_script(s, NULL, &r);
	assert_int_equal(r.failure.kind, FAILURE_CUDA_OOM);
	assert_int_equal(row_of(&r.ledger, LEDGER_BEFORE), 3072 * MiB);
	assert_true(ledger_adds_up(&r.ledger));
	assert_int_equal(r.ledger.unaccounted, 0);
	verdict_fini(&r);
	script_free(s);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_leak),
	    cmocka_unit_test(test_surer),
	    cmocka_unit_test(test_steady),
	    cmocka_unit_test(test_needs_beginning),
	    cmocka_unit_test(test_exchange),
	    cmocka_unit_test(test_healthy),
	    cmocka_unit_test(test_detached),
	    cmocka_unit_test(test_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
