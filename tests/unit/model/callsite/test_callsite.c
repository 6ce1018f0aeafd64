/* Stacks join into call sites: one cause is one call site, and its history keeps every block. */
#include "model/unit.h"

#include "model/callsite/callsite.h"
#include "model/script.h"

static struct model *read_all(struct script *s, enum moment at, struct callsites **callsites)
{
	struct feed feed = script_feed(s);
	struct model *m;
	struct event e;
	struct err err;

	assert_int_equal(model_new(feed, &m, &err), 0);
	while (feed.next(feed.self, &e, &err) == 1)
		assert_int_equal(model_apply(m, &e, &err), 0);
	model_finish(m);
	assert_int_equal(callsites_new(m, at, callsites, &err), 0);
	return m;
}

static const struct callsite *find(const struct callsites *p, const char *function)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (strcmp(p->list[i].function, function) == 0)
			return &p->list[i];
	return NULL;
}

static void test_two_ways_one_callsite(void **state)
{
	struct script *s = script_new();
	uint32_t a = script_stack(s, "main;get;load@m.c:5;malloc@/lib/libc.so.6");
	uint32_t b = script_stack(s, "main;put;load@m.c:5;calloc@/lib/libc.so.6");
	uint32_t c = script_stack(s, "main;put;load@m.c:9;calloc@/lib/libc.so.6");
	struct callsites *p;
	struct model *m;
	const struct callsite *load;
	uint64_t steps = 0, bytes = 0;

	for (int i = 0; i < 3000; i++)
		script_alloc(s, i % 3 ? a : b, 100);
	script_alloc(s, c, 5000);
	m = read_all(s, AT_END, &p);
	assert_int_equal(
	    callsites_of_stack(p, STACK_STATS_HEAP, a), callsites_of_stack(p, STACK_STATS_HEAP, b));
	assert_int_not_equal(
	    callsites_of_stack(p, STACK_STATS_HEAP, a), callsites_of_stack(p, STACK_STATS_HEAP, c));
	load = &p->list[callsites_of_stack(p, STACK_STATS_HEAP, a)];
	assert_string_equal(load->function, "load");
	assert_int_equal(load->facts.live_bytes, 300000);
	for (uint32_t i = 0; i < load->facts.step_count; i++) {
		steps += load->facts.steps[i].count;
		bytes += load->facts.steps[i].bytes;
		assert_true(!i || load->facts.steps[i].time_ns >= load->facts.steps[i - 1].time_ns);
	}
	assert_int_equal(steps, 3000);
	assert_int_equal(bytes, 300000);
	assert_true(load->facts.step_count <= CALLSITE_STEPS);
	callsites_free(p);
	model_free(m);
	script_free(s);
	(void)state;
}

/* One line, and several parts of a framework under it. */
static void test_parts_of_a_framework(void **state)
{
#define CHAIN                                                                                      \
	"main@/app/rag.py:9;invoke@/v/site-packages/core/base.py:3;call@/v/site-packages/core/"    \
	"run.py:5;"
	struct script *s = script_new();
	uint32_t prompt = script_stack(s, CHAIN "format@/v/site-packages/core/prompt.py:7");
	uint32_t again = script_stack(s, CHAIN "format@/v/site-packages/core/prompt.py:8");
	uint32_t cache = script_stack(s, CHAIN "dumps@/v/site-packages/core/dump.py:7");
	struct callsites *p;
	struct model *m;
	const struct callsite *at;

	for (int i = 0; i < 30; i++) {
		script_release(s, script_alloc(s, i % 2 ? prompt : again, 9000));
		script_alloc(s, cache, 9000);
	}
	m = read_all(s, AT_END, &p);
	assert_int_equal(callsites_of_stack(p, STACK_STATS_HEAP, prompt),
	    callsites_of_stack(p, STACK_STATS_HEAP, again));
	assert_int_not_equal(callsites_of_stack(p, STACK_STATS_HEAP, prompt),
	    callsites_of_stack(p, STACK_STATS_HEAP, cache));
	at = &p->list[callsites_of_stack(p, STACK_STATS_HEAP, cache)];
	assert_string_equal(at->function, "main");
	assert_string_equal(at->part, "dumps");
	assert_int_equal(at->facts.live_count, 30);
	assert_true(at->survivors.stays);
	at = &p->list[callsites_of_stack(p, STACK_STATS_HEAP, prompt)];
	assert_string_equal(at->function, "main");
	assert_int_equal(at->facts.live_count, 0);
	callsites_free(p);
	model_free(m);
	script_free(s);
	(void)state;
#undef CHAIN
}

/* Many stacks of one call site: steps stay bounded and even. */
static void test_many_stacks(void **state)
{
	struct script *s = script_new();
	struct callsites *p;
	struct model *m;
	const struct callsite *load;
	uint64_t most = 0, total = 0;

	for (int i = 0; i < 20000; i++) {
		char text[64];
		snprintf(text, sizeof(text), "main;way%d;load@m.c:5", i % 300);
		script_alloc(s, script_stack(s, text), 100);
	}
	m = read_all(s, AT_END, &p);
	load = find(p, "load");
	assert_non_null(load);
	for (uint32_t i = 0; i < load->facts.step_count; i++) {
		total += load->facts.steps[i].count;
		if (load->facts.steps[i].count > most)
			most = load->facts.steps[i].count;
	}
	assert_int_equal(total, 20000);
	assert_true(most <= 20000 / 8);
	callsites_free(p);
	model_free(m);
	script_free(s);
	(void)state;
}

static void test_failed_callsite_without_blocks(void **state)
{
	struct script *s = script_new();
	struct callsites *p;
	struct model *m;

	script_alloc(s, script_stack(s, "main;a"), 100);
	script_failed(s, script_stack(s, "main;never"), 1 << 30);
	m = read_all(s, AT_FAILURE, &p);
	assert_int_not_equal(p->failed, CALLSITE_NONE);
	assert_string_equal(p->list[p->failed].function, "never");
	assert_int_equal(p->live_bytes, 100);
	callsites_free(p);
	model_free(m);
	script_free(s);
	callsites_free(NULL);
	(void)state;
}

/* Blocks of one size may differ by a header, not by a page: a model's next layer does. */
static void test_uniform(void **state)
{
	static const struct {
		uint64_t more;
		bool uniform;
	} of[] = {{0, true}, {32, true}, {240, true}, {4096, false}, {20000, false}};

	for (size_t n = 0; n < sizeof(of) / sizeof(*of); n++) {
		struct script *s = script_new();
		struct callsites *p;
		struct model *m;

		for (int i = 0; i < 24; i++)
			script_alloc(s, script_stack(s, "main;take"),
			    1000000 + (i % 3 == 2 ? of[n].more : 0));
		m = read_all(s, AT_END, &p);
		assert_int_equal(callsite_is_uniform(find(p, "take")), of[n].uniform);
		callsites_free(p);
		model_free(m);
		script_free(s);

		/* One in forty comes by another way, as a copy does. */
		s = script_new();
		for (int i = 0; i < 40; i++)
			script_alloc(
			    s, script_stack(s, "main;take@m.c:5;malloc@/lib/libc.so.6"), 1000000);
		script_alloc(s, script_stack(s, "main;take@m.c:5;calloc@/lib/libc.so.6"),
		    1000000 + of[n].more);
		m = read_all(s, AT_END, &p);
		assert_int_equal(callsite_is_uniform(find(p, "take")), of[n].uniform);
		callsites_free(p);
		model_free(m);
		script_free(s);
	}
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_two_ways_one_callsite),
	    cmocka_unit_test(test_parts_of_a_framework),
	    cmocka_unit_test(test_many_stacks),
	    cmocka_unit_test(test_failed_callsite_without_blocks),
	    cmocka_unit_test(test_uniform),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
