#include "events.h"

static void threads_by_time(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 100, 65536);
	put_alloc(&c, 1000, 0x1000, 10, 0);
	put_alloc(&c, 3000, 0x2000, 20, 0);
	compose_chunk(&c, 1, 2, 0, 50, 65536);
	put_alloc(&c, 2000, 0x3000, 30, 0);
	put_free(&c, 4000, 0x1000);
	t = open_composed(&c);
	e = expect(t, EV_ALLOC, 1000, 1, 0x1000, 10);
	assert_int_equal(e.block->serial, 1);
	assert_int_equal(e.block->birth_ns, 1000);
	assert_int_equal(e.block->thread, 1);
	assert_int_equal(e.flags, 0);
	expect(t, EV_ALLOC, 2000, 2, 0x3000, 30);
	expect(t, EV_ALLOC, 3000, 1, 0x2000, 20);
	e = expect(t, EV_FREE, 4000, 2, 0x1000, 10);
	assert_int_equal(e.block->serial, 1);
	no_more(t);
	assert_int_equal(trace_counts(t)->events, 4);
	assert_int_equal(trace_counts(t)->repairs, 0);
	assert_int_equal(t->live.count, 2);
	assert_true(t->live.bytes == 50);
	trace_close(t);
	compose_free(&c);
}

/* At the same tick the release goes first, whichever stream it is in. */
static void ties_release_first(void **state)
{
	for (int swap = 0; swap < 2; swap++) {
		struct compose c;
		struct trace *t;

		compose_begin(&c);
		compose_chunk(&c, 1, swap ? 2 : 1, 0, 0, 65536);
		put_alloc(&c, 10, 0x1000, 1, 0);
		put_free(&c, 20, 0x1000);
		compose_chunk(&c, 1, swap ? 1 : 2, 0, 0, 65536);
		put_alloc(&c, 20, 0x1000, 2, 0);
		t = open_composed(&c);
		expect(t, EV_ALLOC, 10, swap ? 2 : 1, 0x1000, 1);
		expect(t, EV_FREE, 20, swap ? 2 : 1, 0x1000, 1);
		expect(t, EV_ALLOC, 20, swap ? 1 : 2, 0x1000, 2);
		no_more(t);
		assert_int_equal(trace_counts(t)->repairs, 0);
		trace_close(t);
		compose_free(&c);
	}
}

/* A coarse clock gives all of it one tick: the live blocks decide, within each thread's own
 * order. */
static void ties_by_what_lives(void **state)
{
	for (int swap = 0; swap < 2; swap++) {
		uint32_t a = swap ? 2 : 1, b = swap ? 1 : 2;
		struct compose c;
		struct trace *t;

		compose_begin(&c);
		compose_chunk(&c, 1, a, 0, 0, 65536);
		put_alloc(&c, 10, 0x1000, 1, 0); /* acquired here, released there */
		put_free(&c, 10, 0x2000); /* acquired there, released here */
		compose_chunk(&c, 1, b, 0, 0, 65536);
		put_free(&c, 10, 0x1000);
		put_alloc(&c, 10, 0x2000, 2, 0);
		put_alloc(&c, 10, 0x1000, 3, 0);
		t = open_composed(&c);
		expect(t, EV_ALLOC, 10, a, 0x1000, 1);
		expect(t, EV_FREE, 10, b, 0x1000, 1);
		expect(t, EV_ALLOC, 10, b, 0x2000, 2);
		/* both may go now */
		for (int i = 0; i < 2; i++) {
			struct event e;
			assert_int_equal(trace_next(t, &e, NULL), 1);
			assert_true(e.kind == EV_FREE ? e.address == 0x2000 : e.address == 0x1000);
		}
		no_more(t);
		assert_int_equal(trace_counts(t)->repairs, 0);
		assert_int_equal(trace_counts(t)->unmatched_frees, 0);
		assert_int_equal(trace_counts(t)->double_allocs, 0);
		assert_int_equal(t->live.count, 1);
		trace_close(t);
		compose_free(&c);
	}
}

static void realloc_halves_are_paired(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 10, 0x1000, 100, 0);
	put_free_realloc(&c, 20, 0x1000);
	PUT_EVENT(&c, 25, TRACE_MAP, 0x100000, 4096, 3, 8, 1, 0, 0, 0, 0); /* by malloc meanwhile */
	put_alloc_api(&c, 30, 0x2000, 200, 0, TRACE_API_REALLOC);
	put_alloc_api(&c, 40, 0x3000, 300, 0, TRACE_API_REALLOC); /* realloc(NULL, 300) */
	put_free_realloc(&c, 50, 0x9000); /* of an earlier block */
	put_alloc_api(&c, 60, 0x9000, 900, 0, TRACE_API_REALLOC);
	compose_chunk(&c, 1, 2, 0, 0, 65536);
	put_alloc_api(
	    &c, 29, 0x5000, 500, 0, TRACE_API_REALLOC); /* another thread's is no half of it */
	t = open_composed(&c);
	expect(t, EV_ALLOC, 10, 1, 0x1000, 100);
	e = expect(t, EV_FREE, 20, 1, 0x1000, 100);
	assert_int_equal(e.flags, EVENT_REALLOC);
	assert_int_equal(next_event(t).kind, EV_MAP);
	e = expect(t, EV_ALLOC, 29, 2, 0x5000, 500);
	assert_int_equal(e.flags, 0);
	e = expect(t, EV_ALLOC, 30, 1, 0x2000, 200);
	assert_int_equal(e.flags, EVENT_REALLOC);
	assert_non_null(e.old);
	assert_true(e.old->address == 0x1000 && e.old->size == 100 && e.old->serial == 1);
	e = expect(t, EV_ALLOC, 40, 1, 0x3000, 300);
	assert_int_equal(e.flags, 0);
	assert_null(e.old);
	e = next_event(t);
	assert_int_equal(e.flags, EVENT_REALLOC | EVENT_REPAIRED);
	e = expect(t, EV_ALLOC, 60, 1, 0x9000, 900);
	assert_int_equal(e.flags, EVENT_REALLOC);
	assert_null(e.old);
	no_more(t);
	trace_close(t);
	compose_free(&c);
}

/* realloc(p, 0) released and returned nothing: a later realloc(NULL, n) is not its half. */
static void a_realloc_that_only_released(void **state)
{
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 10, 0x1000, 100, 0);
	put_free_realloc(&c, 20, 0x1000);
	put_alloc(&c, 30, 0x2000, 1, 0);
	put_alloc_api(&c, 40, 0x3000, 300, 0, TRACE_API_REALLOC);
	t = open_composed(&c);
	for (int i = 0; i < 3; i++)
		next_event(t);
	assert_int_equal(next_event(t).flags, 0);
	no_more(t);
	trace_close(t);
	compose_free(&c);
}

static void unfree_restores(void **state)
{
	const struct trace_thread *threads;
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 10, 0x1000, 100, 0);
	put_free_realloc(&c, 20, 0x1000);
	put_unfree(&c, 30, 0x1000);
	put_alloc_api(&c, 40, 0x2000, 8, 0, TRACE_API_REALLOC); /* of NULL */
	put_free(&c, 50, 0x8000); /* never seen; and it did not happen */
	put_unfree(&c, 60, 0x8000);
	put_free(&c, 70, 0x1000);
	put_unfree(&c, 80, 0x7000); /* never released: nothing to undo */
	t = open_composed(&c);
	expect(t, EV_ALLOC, 10, 1, 0x1000, 100);
	expect(t, EV_FREE, 20, 1, 0x1000, 100);
	e = expect(t, EV_UNFREE, 30, 1, 0x1000, 100);
	assert_int_equal(e.block->serial, 1);
	assert_int_equal(e.block->birth_ns, 10);
	e = expect(t, EV_ALLOC, 40, 1, 0x2000, 8);
	assert_int_equal(e.flags, 0);
	assert_null(next_event(t).block);
	expect(t, EV_FREE, 70, 1, 0x1000, 100);
	no_more(t);
	assert_int_equal(trace_counts(t)->unmatched_frees, 0);
	assert_int_equal(trace_threads(t, &threads), 1);
	assert_int_equal(threads[0].tid, 101);
	assert_int_equal(threads[0].allocs, 2);
	assert_int_equal(threads[0].frees, 1); /* those that happened */
	trace_close(t);
	compose_free(&c);
}

/* A second pass gives the same, and so does one that starts in the middle of the first. */
static void rewind_is_the_same_again(void **state)
{
	struct event first[40], e;
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	for (uint64_t i = 0; i < 20; i++)
		put_alloc(&c, 100 * i, 0x1000 + 16 * i, i + 1, 0);
	PUT_EVENT(&c, 5000, TRACE_LEVEL, 0, 2, 1, 111, 2, 222);
	compose_chunk(&c, 1, 2, 0, 0, 65536);
	for (uint64_t i = 0; i < 19; i++)
		put_free(&c, 100 * i + 150, 0x1000 + 16 * i);
	t = open_composed(&c);
	for (size_t i = 0; i < 40; i++)
		first[i] = next_event(t);
	no_more(t);
	assert_int_equal(trace_counts(t)->events, 40);
	for (size_t stop = 0; stop <= 40; stop++) {
		trace_rewind(t);
		assert_int_equal(trace_counts(t)->events, 0);
		assert_int_equal(t->live.count, 0);
		for (size_t i = 0; i < stop; i++) {
			e = next_event(t);
			assert_int_equal(e.kind, first[i].kind);
			assert_int_equal(e.time_ns, first[i].time_ns);
			assert_int_equal(e.address, first[i].address);
			assert_int_equal(e.level_count, first[i].level_count);
		}
	}
	no_more(t);
	trace_close(t);
	compose_free(&c);
}

/* A key is one task until its end, from any thread and over chunks; then it is another. */
static void tasks_by_their_keys(void **state)
{
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 10, 0x1000, 1, 0);
	PUT_EVENT(&c, 20, TRACE_TASK, 0xaaa0);
	put_alloc(&c, 30, 0x2000, 2, 0);
	PUT_EVENT(&c, 40, TRACE_TASK, 0xbbb0);
	put_alloc(&c, 50, 0x3000, 3, 0);
	put_free(&c, 60, 0x2000);
	put_unfree(&c, 70, 0x2000);
	compose_chunk(&c, 1, 1, 1, 100, 65536);
	put_alloc(&c, 110, 0x4000, 4, 0);
	PUT_EVENT(&c, 200, TRACE_TASK, 0xaaa0); /* at the tick of its end: after it */
	put_alloc(&c, 210, 0x5000, 5, 0);
	PUT_EVENT(&c, 220, TRACE_TASK, 0);
	put_alloc(&c, 230, 0x6000, 6, 0);
	compose_chunk(&c, 1, 2, 0, 0, 65536);
	PUT_EVENT(&c, 120, TRACE_TASK, 0xaaa0);
	put_alloc(&c, 130, 0x7000, 7, 0);
	PUT_EVENT(&c, 190, TRACE_TASK_END, 0xccc0);
	PUT_EVENT(&c, 200, TRACE_TASK_END, 0xaaa0);
	put_free(&c, 205, 0x7000);
	t = open_composed(&c);
	for (int round = 0; round < 2; round++) {
		struct event e;

		assert_int_equal(expect(t, EV_ALLOC, 10, 1, 0x1000, 1).task, 0);
		e = expect(t, EV_ALLOC, 30, 1, 0x2000, 2);
		assert_int_equal(e.task, 1);
		assert_int_equal(e.block->task, 1);
		assert_int_equal(expect(t, EV_ALLOC, 50, 1, 0x3000, 3).task, 2);
		e = expect(t, EV_FREE, 60, 1, 0x2000, 2);
		assert_int_equal(e.task, 2);
		assert_int_equal(e.block->task, 1);
		e = expect(t, EV_UNFREE, 70, 1, 0x2000, 2);
		assert_int_equal(e.block->task, 1);
		assert_int_equal(expect(t, EV_ALLOC, 110, 1, 0x4000, 4).task, 2);
		assert_int_equal(expect(t, EV_ALLOC, 130, 2, 0x7000, 7).task, 1);
		e = next_event(t);
		assert_int_equal(e.kind, EV_TASK_END);
		assert_int_equal(e.thread, 2);
		assert_int_equal(e.task, 1);
		assert_int_equal(expect(t, EV_FREE, 205, 2, 0x7000, 7).task, 1);
		assert_int_equal(expect(t, EV_ALLOC, 210, 1, 0x5000, 5).task, 3);
		assert_int_equal(expect(t, EV_ALLOC, 230, 1, 0x6000, 6).task, 0);
		no_more(t);
		assert_int_equal(trace_counts(t)->tasks, 3);
		assert_int_equal(trace_counts(t)->events, 10);
		trace_rewind(t);
	}
	trace_close(t);
	compose_free(&c);
}

static void marks_become_events(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	def_string(&c, 1, "/chat");
	def_string(&c, 2, "torch");
	DEF_STACK(&c, 5, 0, 0, 0x1000);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	PUT_EVENT(&c, 10, TRACE_MARK, TRACE_MARK_BEGIN, UINT64_MAX, 1, TRACE_MARK_PUSHED, 5, 2);
	PUT_EVENT(&c, 20, TRACE_TASK, 0xaaa0);
	PUT_EVENT(&c, 30, TRACE_MARK, TRACE_MARK_END, 7, 0, TRACE_MARK_REQUEST, 0, 0, 1, 2, 3);
	PUT_EVENT(&c, 35, TRACE_MARK, TRACE_MARK_LENGTH, 7, 0, TRACE_MARK_REQUEST, 5, 0, 4096, 3);
	PUT_EVENT(&c, 40, TRACE_MARK, TRACE_MARK_POINT, 0, 1); /* as it was reserved */
	PUT_EVENT(&c, 50, TRACE_MARK, TRACE_MARK_POINT, 0, 1, 0); /* cut short */
	t = open_composed(&c);
	e = next_event(t);
	assert_int_equal(e.kind, EV_MARK);
	assert_int_equal(e.u.mark.phase, TRACE_MARK_BEGIN);
	assert_int_equal(e.u.mark.what, TRACE_MARK_PUSHED);
	assert_true(e.u.mark.id == UINT64_MAX);
	assert_string_equal(e.u.mark.name, "/chat");
	assert_string_equal(e.u.mark.domain, "torch");
	assert_int_equal(e.stack, 1);
	assert_int_equal(e.task, 0);
	e = next_event(t);
	assert_int_equal(e.u.mark.phase, TRACE_MARK_END);
	assert_true(e.u.mark.id == 7);
	assert_null(e.u.mark.name);
	assert_null(e.u.mark.domain);
	assert_int_equal(e.stack, 0);
	assert_int_equal(e.task, 1);
	e = next_event(t);
	assert_int_equal(e.u.mark.phase, TRACE_MARK_LENGTH);
	assert_int_equal(e.u.mark.tokens, 4096);
	assert_int_equal(e.stack, 1);
	e = next_event(t);
	assert_int_equal(e.u.mark.tokens, 0);
	assert_int_equal(e.u.mark.phase, TRACE_MARK_POINT);
	assert_int_equal(e.u.mark.what, TRACE_MARK_REQUEST);
	assert_int_equal(e.stack, 0);
	no_more(t);
	assert_int_equal(trace_facts(t)->torn_chunks, 1);
	trace_close(t);
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(threads_by_time),
	    cmocka_unit_test(ties_release_first),
	    cmocka_unit_test(ties_by_what_lives),
	    cmocka_unit_test(realloc_halves_are_paired),
	    cmocka_unit_test(a_realloc_that_only_released),
	    cmocka_unit_test(unfree_restores),
	    cmocka_unit_test(rewind_is_the_same_again),
	    cmocka_unit_test(tasks_by_their_keys),
	    cmocka_unit_test(marks_become_events),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
