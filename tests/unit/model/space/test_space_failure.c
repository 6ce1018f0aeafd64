#include "model/spaces.h"

static struct script *device(uint32_t *cuda, uint32_t *torch)
{
	struct script *s = script_new();

	*cuda = script_space(s, "cuda:0");
	*torch = script_space(s, "torch:0");
	script_space_alloc(s, *cuda, script_stack(s, "load"), 0x10000000, 100 * MiB);
	script_space_alloc(s, *torch, script_stack(s, "load"), 0x10000000, 80 * MiB);
	return s;
}

/* PyTorch's way: refused, cached segments given back, refused again, out of memory. */
static void both_levels(void **state)
{
	uint32_t cuda, torch;
	struct script *s = device(&cuda, &torch);
	uint32_t stack = script_stack(s, "request");
	const struct device_failure *f;
	struct model *m;

	script_space_alloc(s, cuda, stack, 0x20000000, 20 * MiB);
	script_space_failed(s, cuda, stack, 64 * MiB, 1);
	script_space_free(s, cuda, 0x20000000);
	script_space_failed(s, cuda, stack, 64 * MiB, 1);
	script_space_failed(s, torch, stack, 63 * MiB, 1);
	m = spaces_model(s);
	f = spaces_failure(m->spaces);
	assert_non_null(f);
	assert_string_equal(m->spaces->list[f->space]->name, "torch:0");
	assert_string_equal(m->spaces->list[f->below]->name, "cuda:0");
	assert_int_equal(f->size, 63 * MiB);
	assert_int_equal(f->segment, 64 * MiB);
	assert_int_equal(f->count, 3);
	assert_int_equal(m->spaces->failure_total, 1);
	assert_int_equal(f->event, m->run.events);
	model_free(m);
	script_free(s);
}

static void period(struct script *s, uint64_t begin_ns)
{
	struct event *e = script_event(s, EV_CHECKPOINT, TRACE_SPACE_HOST);

	e->u.period.begin_ns = begin_ns;
	script_facts(s)->checkpoint.number = 1;
	script_facts(s)->checkpoint.until_ns = e->time_ns;
}

static void went(struct script *s, uint32_t space, uint64_t bytes)
{
	struct event *e = script_event(s, EV_WENT, space);

	e->stack = script_stack(s, "request");
	e->size = MiB;
	e->u.went.count = bytes / MiB;
	e->u.went.bytes = bytes;
}

/* Whether the refusal still stands in a process that ended badly: `later` bytes came and went in
 * the period after the refusal's, `since` after all that is partly known. */
static bool stands(uint64_t later, uint64_t since, bool badly)
{
	uint32_t cuda, torch;
	struct script *s = device(&cuda, &torch);
	uint32_t stack = script_stack(s, "request"), other = script_stack(s, "other");
	uint64_t begin, at = 0x40000000;
	struct model *m;
	bool result;

	went(s, torch, 2000 * MiB);
	script_space_failed(s, torch, stack, 64 * MiB, 0);
	script_space_alloc(s, torch, other, 0x20000000, 500 * MiB); /* outlived the checkpoint */
	begin = script_event(s, EV_LEVEL, TRACE_SPACE_HOST)->time_ns;
	period(s, 0);
	if (later)
		went(s, torch, later);
	period(s, begin);
	for (; since; since -= 10 * MiB, at += 10 * MiB) {
		script_space_alloc(s, torch, other, at, 10 * MiB);
		script_space_free(s, torch, at);
	}
	m = spaces_model(s);
	spaces_finish(m->spaces, badly);
	result = spaces_failure(m->spaces);
	model_free(m);
	script_free(s);
	return result;
}

/* Known survivors of a partly known time do not show recovery. Work in later periods and since
 * does. */
static void before_a_checkpoint(void **state)
{
	assert_true(stands(0, 0, true));
	assert_true(stands(0, 0, false));
	assert_true(stands(0, 300 * MiB, true));
	assert_true(stands(0, 300 * MiB, false));
	assert_false(stands(0, 800 * MiB, false));
	assert_true(stands(0, 800 * MiB, true)); /* may be about to exit: it had done more before */
	assert_false(stands(0, 4000 * MiB, true));
	assert_false(stands(700 * MiB, 0, false));
	assert_true(stands(100 * MiB, 300 * MiB, false));
	assert_true(stands(700 * MiB, 0, true));
	assert_false(stands(4000 * MiB, 0, true));
	(void)state;
}

/* All that came and went before the checkpoint preceded a refusal after it. */
static void soon_after_a_checkpoint(void **state)
{
	uint32_t cuda, torch;
	struct script *s = device(&cuda, &torch);
	uint32_t stack = script_stack(s, "request");
	struct model *m;

	went(s, torch, 2000 * MiB);
	period(s, 0);
	script_space_failed(s, torch, stack, 64 * MiB, 0);
	for (uint64_t i = 0; i < 40; i++) {
		script_space_alloc(s, torch, stack, 0x20000000 + i * 10 * MiB, 10 * MiB);
		script_space_free(s, torch, 0x20000000 + i * 10 * MiB);
	}
	m = spaces_model(s);
	assert_null(spaces_failure(m->spaces));
	spaces_finish(m->spaces, true);
	assert_non_null(spaces_failure(m->spaces));
	model_free(m);
	script_free(s);
	(void)state;
}

/* A second attempt that is granted is no out-of-memory. */
static void retried(void **state)
{
	uint32_t cuda, torch;
	struct script *s = device(&cuda, &torch);
	struct model *m;

	script_space_failed(s, cuda, script_stack(s, "request"), 64 * MiB, 1);
	m = spaces_model(s);
	assert_non_null(spaces_failure(m->spaces));
	model_free(m);
	script_space_alloc(s, cuda, script_stack(s, "other"), 0x30000000, 64 * MiB);
	script_event(s, EV_SPACE_CALL, cuda);
	m = spaces_model(s);
	assert_non_null(spaces_failure(m->spaces)); /* another one's, of another group */
	model_free(m);
	{
		struct event *e = script_event(s, EV_SPACE_ALLOC, cuda);

		e->address = 0x40000000;
		e->size = 64 * MiB;
		e->u.space.retry = 1;
	}
	m = spaces_model(s);
	assert_null(spaces_failure(m->spaces));
	assert_true(m->spaces->failures[0].retried);
	assert_int_equal(m->spaces->retried_total, 1);
	model_free(m);
	script_free(s);
}

static void not_for_want_of_memory(void **state)
{
	uint32_t cuda, torch;
	struct script *s = device(&cuda, &torch);
	struct model *m;

	script_space_failed(s, cuda, 0, 64 * MiB, 1)->u.failed.result = 801;
	m = spaces_model(s);
	assert_null(spaces_failure(m->spaces));
	assert_int_equal(m->spaces->other_results, 1);
	model_free(m);
	script_free(s);
}

/* 10 MiB live of a request, which is refused 8 MiB more. */
static struct script *refused(uint32_t *torch, uint32_t *stack)
{
	uint32_t cuda;
	struct script *s = device(&cuda, torch);

	*stack = script_stack(s, "request");
	script_space_alloc(s, *torch, *stack, 0x15000000, 10 * MiB);
	script_space_failed(s, *torch, *stack, 8 * MiB, 1);
	return s;
}

/* It went on and held as much again: the request after that is a new story. */
static void survived(void **state)
{
	uint32_t torch, stack;
	struct script *s = refused(&torch, &stack);
	struct model *m;

	script_space_free(s, torch, 0x15000000);
	m = spaces_model(s);
	assert_non_null(spaces_failure(m->spaces));
	model_free(m);
	script_space_alloc(s, torch, script_stack(s, "next"), 0x15000000, 10 * MiB);
	m = spaces_model(s);
	assert_true(m->spaces->failures[0].recovered);
	assert_false(m->spaces->failures[0].retried);
	assert_int_equal(spaces_failure(m->spaces)->size, 8 * MiB);
	model_free(m);
	script_wait(s, 2000000000);
	script_space_failed(s, torch, stack, 9 * MiB, 2);
	m = spaces_model(s);
	assert_int_equal(spaces_failure(m->spaces)->size, 9 * MiB);
	assert_int_equal(m->spaces->failure_count, 2);
	model_free(m);
	for (uint32_t i = 0; i < 100; i++) { /* more than there is room for */
		script_wait(s, 2000000000);
		script_space_failed(s, torch, stack, 9 * MiB + i, 3 + i);
	}
	m = spaces_model(s);
	assert_int_equal(m->spaces->failure_count, DEVICE_FAILURES);
	assert_int_equal(m->spaces->failure_total, 102);
	assert_int_equal(spaces_failure(m->spaces)->size, 9 * MiB + 99);
	model_free(m);
	script_free(s);
}

/* A smaller request at once takes what it can get; not if all of it would have fitted by then. */
static void less_at_once(void **state)
{
	for (int given_up = 0; given_up < 2; given_up++) {
		uint32_t torch, stack;
		struct script *s = refused(&torch, &stack);
		struct model *m;

		if (given_up)
			script_space_free(s, torch, 0x15000000);
		script_space_alloc(s, torch, stack, 0x16000000, 1 * MiB);
		m = spaces_model(s);
		assert_int_equal(m->spaces->failures[0].retried, !given_up);
		model_free(m);
		script_free(s);
	}
	(void)state;
}

/* Several threads at once are refused one after the other: the first one's request counts. On
 * one thread they are separate requests. */
static void one_after_the_other(void **state)
{
	for (uint32_t threads = 1; threads <= 3; threads += 2) {
		uint32_t cuda, torch;
		struct script *s = device(&cuda, &torch);
		uint32_t stack = script_stack(s, "request");
		struct model *m;

		script_space_alloc(s, torch, stack, 0x15000000, 10 * MiB);
		for (uint32_t i = 0; i < 3; i++) {
			script_thread(s, 1 + i % threads, 0);
			script_space_failed(s, torch, stack, (8 + i) * MiB, 1 + i);
			script_space_free(s, torch, 0x15000000);
			script_wait(s, threads == 1 ? 1500000000 : 1000000);
			script_space_alloc(s, torch, script_stack(s, "next"), 0x15000000, 10 * MiB);
		}
		m = spaces_model(s);
		assert_int_equal(m->spaces->failure_count, 3);
		assert_int_equal(spaces_failure(m->spaces)->size, (threads == 1 ? 10 : 8) * MiB);
		model_free(m);
		script_free(s);
	}
	(void)state;
}

/* The batch is halved, and halved again: it is granted in the end. */
static void halved(void **state)
{
	uint32_t cuda, torch;
	struct script *s = device(&cuda, &torch);
	uint32_t asks = script_stack(s, "serve@/app/a.py:3;refuse"),
		 gets = script_stack(s, "serve@/app/a.py:3;grant"),
		 first = script_stack(s, "serve@/app/a.py:2;grant");
	struct model *m;

	script_space_alloc(s, torch, first, 0x15000000, 10 * MiB);
	script_space_failed(s, torch, asks, 80 * MiB, 1);
	script_space_free(s, torch, 0x15000000);
	script_space_alloc(s, torch, first, 0x15000000, 5 * MiB);
	script_space_failed(s, torch, asks, 40 * MiB, 2);
	script_space_free(s, torch, 0x15000000);
	script_space_alloc(s, torch, first, 0x15000000, 5 * MiB / 2);
	m = spaces_model(s);
	assert_non_null(spaces_failure(m->spaces));
	model_free(m);
	script_space_alloc(s, torch, gets, 0x16000000, 20 * MiB);
	m = spaces_model(s);
	assert_null(spaces_failure(m->spaces));
	assert_true(m->spaces->failures[m->spaces->failure_count - 1].retried);
	model_free(m);
	script_free(s);
	(void)state;
}

/* It goes on with half as much at a time, and never holds as much again. */
static void went_on(void **state)
{
	struct script *s = script_new();
	uint32_t torch = script_space(s, "torch:0"), stack = script_stack(s, "main;work"),
		 half = script_stack(s, "main;half");
	struct model *m;

	script_space_alloc(s, torch, stack, 0x10000000, 100 * MiB);
	script_space_failed(s, torch, stack, 50 * MiB, 1);
	script_space_free(s, torch, 0x10000000);
	for (uint64_t i = 0; i < 2; i++) {
		script_space_alloc(s, torch, half, 0x10000000, 50 * MiB);
		script_space_free(s, torch, 0x10000000);
	}
	m = spaces_model(s);
	assert_false(m->spaces->failures[0].recovered);
	model_free(m);
	for (uint64_t i = 0; i < 2; i++) {
		script_space_alloc(s, torch, half, 0x10000000, 50 * MiB);
		script_space_free(s, torch, 0x10000000);
	}
	m = spaces_model(s);
	assert_true(m->spaces->failures[0].recovered);
	assert_non_null(spaces_failure(m->spaces));
	model_free(m);
	script_free(s);
}

/* Another worker takes the failed worker's released memory; then the process ends of it. */
static void ended_of_it(void **state)
{
	struct script *s = script_new();
	uint32_t torch = script_space(s, "torch:0"), stack = script_stack(s, "main;work");
	struct model *m;

	script_space_alloc(s, torch, stack, 0x10000000, 100 * MiB);
	script_space_alloc(s, torch, stack, 0x20000000, MiB);
	script_space_failed(s, torch, stack, MiB, 1);
	script_space_free(s, torch, 0x20000000);
	script_space_alloc(s, torch, stack, 0x20000000, MiB);
	m = spaces_model(s);
	assert_null(spaces_failure(m->spaces));
	model_free(m);
	script_exit(s, 1);
	m = spaces_model(s);
	assert_int_equal(spaces_failure(m->spaces)->size, MiB);
	model_free(m);
	script_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(both_levels),
	    cmocka_unit_test(before_a_checkpoint),
	    cmocka_unit_test(soon_after_a_checkpoint),
	    cmocka_unit_test(retried),
	    cmocka_unit_test(not_for_want_of_memory),
	    cmocka_unit_test(survived),
	    cmocka_unit_test(less_at_once),
	    cmocka_unit_test(one_after_the_other),
	    cmocka_unit_test(halved),
	    cmocka_unit_test(went_on),
	    cmocka_unit_test(ended_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
