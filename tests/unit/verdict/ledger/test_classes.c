/* Each byte in one class: by the claims of findings, best first, then by shape. */
#include "verdict/judged.h"

#include <stdlib.h>

#include "model/space/space.h"
#include "verdict/ledger/classes.h"

/* A server's device: parameters of two shapes, a pool, and requests whose blocks come and go,
 * one of each still there; a cache of one block for each request. */
static struct script *server(uint32_t *space)
{
	struct script *s = script_new();
	uint32_t device = script_space(s, "cuda:0");
	uint32_t load = script_stack(s, "main;load"), pool = script_stack(s, "main;reserve");
	uint32_t work = script_stack(s, "main;answer"), keep = script_stack(s, "main;remember");
	uint32_t stage = script_stack(s, "main;stage");
	uint64_t at = 1ull << 32, before = 0;

	/* Staging copies come and go while it loads: that is no work. */
	for (uint64_t i = 0; i < 20; i++, at += GiB) {
		script_space_alloc(s, device, stage, at, 10 * MiB);
		script_wait(s, 1000);
		script_space_free(s, device, at);
	}
	for (uint64_t i = 0; i < 20; i++, at += GiB)
		script_space_alloc(s, device, load, at, i % 2 ? 3 * MiB : 5 * MiB);
	for (uint64_t i = 0; i < 8; i++, at += GiB)
		script_space_alloc(s, device, pool, at, 16 * MiB);
	for (uint64_t i = 0; i < 100; i++, at += 2 * GiB) {
		script_space_alloc(s, device, work, at, 10 * MiB);
		script_space_alloc(s, device, keep, at + GiB, 2 * MiB);
		script_wait(s, 1000000);
		if (before)
			script_space_free(s, device, before);
		before = at;
	}
	*space = device;
	return s;
}

static void run(struct script *s, struct model **m, struct callsites **p)
{
	struct feed feed = script_feed(s);
	struct err err = {""};
	struct event e;

	assert_int_equal(model_new(feed, m, &err), 0);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(*m, &e, &err), 0);
	model_finish(*m);
	assert_int_equal(
	    callsites_new(spaces_find((*m)->spaces, "cuda:0")->model, AT_END, p, &err), 0);
}

static uint64_t sum(const struct classes *c)
{
	uint64_t all = c->heap_other + c->maps_other + c->arenas;

	for (int i = 0; i < CLASS_COUNT; i++)
		all += c->of[i].heap + c->of[i].maps;
	return all;
}

static void by_shape(void **state)
{
	struct classes_input in = {.device = true};
	struct classes c;
	struct callsites *p;
	struct model *m;
	uint32_t space;
	struct script *s = server(&space);

	run(s, &m, &p);
	in.callsites = p;
	in.heap_bytes = p->live_bytes;
	assert_int_equal(classes_make(&in, &c), 0);
	assert_int_equal(c.of[CLASS_WEIGHTS].heap, 80 * MiB);
	assert_int_equal(c.of[CLASS_POOLS].heap, 128 * MiB);
	assert_int_equal(c.of[CLASS_REQUESTS].heap, 10 * MiB);
	assert_int_equal(c.of[CLASS_RETAINED].heap, 200 * MiB);
	assert_int_equal(c.heap_other, 0);
	assert_int_equal(sum(&c), p->live_bytes);
	/* Each call site knows the class that it was put in. */
	for (uint32_t i = 0; i < p->count; i++) {
		unsigned class = p->classes[i];

		assert_true(!class || class <= CLASS_COUNT);
		assert_true(!class || c.of[class - 1].heap >= p->list[i].facts.live_bytes);
		assert_true(class || !p->list[i].facts.live_bytes);
	}
	callsites_free(p);
	model_free(m);
	script_free(s);
	(void)state;
}

/* On the host, blocks from before the work began are a model, unless a module's import alone
 * made them. */
static void by_import(void **state)
{
	for (int import = 0; import < 2; import++) {
		struct script *s = script_new();
		uint32_t load = script_stack(s,
		    import
			? "<module>@/app/main.py:3;_find_and_load@<frozen importlib._bootstrap>:9;"
			  "init@/usr/lib/libblas.so"
			: "<module>@/app/main.py:3;load@/app/main.py:9");
		uint32_t work = script_stack(s, "<module>@/app/main.py:3;answer@/app/main.py:20");
		struct classes_input in = {0};
		struct feed feed = script_feed(s);
		struct err err = {""};
		struct classes c;
		struct callsites *p;
		struct model *m;
		struct event e;

		script_alloc(s, load, 128 * MiB);
		for (int i = 0; i < 200; i++) {
			uint64_t at = script_alloc(s, work, MiB);

			script_wait(s, 1000);
			script_release(s, at);
		}
		assert_int_equal(model_new(feed, &m, &err), 0);
		while (feed.next(feed.self, &e, &err) == 1)
			assert_int_equal(model_apply(m, &e, &err), 0);
		model_finish(m);
		assert_int_equal(callsites_new(m, AT_END, &p, &err), 0);
		in.callsites = p;
		in.heap_bytes = p->live_bytes;
		assert_int_equal(classes_make(&in, &c), 0);
		assert_int_equal(c.of[CLASS_WEIGHTS].heap, import ? 0 : 128 * MiB);
		assert_int_equal(c.heap_other, import ? 128 * MiB : 0);
		callsites_free(p);
		model_free(m);
		script_free(s);
	}
	(void)state;
}

static uint32_t callsite_named(const struct callsites *p, const char *function)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (strcmp(p->list[i].function, function) == 0)
			return i;
	fail();
	return 0;
}

/* A finding's claims come first, the best before others; no byte counts twice or beyond the
 * total. */
static void by_findings(void **state)
{
	struct candidate found[3] = {{.finding = {.cause = CAUSE_LEAK, .claim_count = 1}},
	    {.finding = {.cause = CAUSE_PROMPT_GROWTH, .claim_count = 1}, .admissible = true},
	    {.finding = {.cause = CAUSE_BATCH_PREALLOC, .claim_count = 1}, .admissible = false}};
	struct classes_input in = {.device = true, .candidates = found, .candidate_count = 3};
	struct classes c;
	struct callsites *p;
	struct model *m;
	uint32_t space;
	struct script *s = server(&space);

	run(s, &m, &p);
	in.callsites = p;
	in.heap_bytes = p->live_bytes;
	found[0].finding.claims[0] =
	    (struct claim){.callsite = callsite_named(p, "remember"), .bytes = 150 * MiB};
	found[1].finding.claims[0] =
	    (struct claim){.callsite = callsite_named(p, "remember"), .bytes = 180 * MiB};
	found[2].finding.claims[0] =
	    (struct claim){.callsite = callsite_named(p, "load"), .bytes = 1 * MiB};
	assert_int_equal(classes_make(&in, &c), 0);
	assert_int_equal(c.of[CLASS_LEAKED].heap, 150 * MiB);
	assert_int_equal(c.of[CLASS_PROMPT].heap, 50 * MiB);
	assert_int_equal(c.of[CLASS_RETAINED].heap, 0);
	assert_int_equal(c.of[CLASS_WEIGHTS].heap, 80 * MiB); /* the third is not admissible */
	assert_int_equal(sum(&c), p->live_bytes);
	/* A pool is charged whole, with its used part. */
	found[2].admissible = true;
	assert_int_equal(classes_make(&in, &c), 0);
	assert_int_equal(c.of[CLASS_POOLS].heap, (128 + 80) * MiB);
	/* Without a cause, no class says one. */
	in.undecided = true;
	assert_int_equal(classes_make(&in, &c), 0);
	assert_int_equal(c.of[CLASS_WEIGHTS].heap, 80 * MiB);
	assert_int_equal(c.of[CLASS_POOLS].heap, 128 * MiB);
	assert_int_equal(c.heap_other, 210 * MiB);
	assert_int_equal(sum(&c), p->live_bytes);
	in.undecided = false;
	/* Fewer bytes than the call sites account for: no class falls below zero. */
	in.heap_bytes = 100 * MiB;
	assert_int_equal(classes_make(&in, &c), 0);
	assert_int_equal(sum(&c), 100 * MiB);
	callsites_free(p);
	model_free(m);
	script_free(s);
	(void)state;
}

static void names(void **state)
{
	assert_int_equal(class_of_cause(CAUSE_LEAK), CLASS_LEAKED);
	assert_int_equal(class_of_cause(CAUSE_FRAGMENTATION), CLASS_NONE);
	for (int i = 0; i < CLASS_COUNT; i++)
		assert_true(strlen(class_name(i)) > 0);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(by_shape),
	    cmocka_unit_test(by_import),
	    cmocka_unit_test(by_findings),
	    cmocka_unit_test(names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
