#include "../events.h"

/* A release that another thread noted up to 100 us late is applied first; the rest of that
 * thread's events stay in place. */
static void late_release_is_found(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 1000, 0x1000, 1, 0);
	put_alloc(&c, 60000, 0x5000, 5, 0);
	put_free(&c, 101000, 0x1000); /* exactly 100 us after the acquisition below */
	put_free(&c, 200000, 0x5000);
	compose_chunk(&c, 1, 2, 0, 0, 65536);
	put_alloc(&c, 1000 + 1, 0x1000, 2, 0);
	t = open_composed(&c);
	expect(t, EV_ALLOC, 1000, 1, 0x1000, 1);
	e = expect(t, EV_FREE, 1001, 1, 0x1000, 1);
	assert_int_equal(e.flags, 0);
	e = expect(t, EV_ALLOC, 1001, 2, 0x1000, 2);
	assert_int_equal(e.flags, 0);
	expect(t, EV_ALLOC, 60000, 1, 0x5000, 5);
	expect(t, EV_FREE, 200000, 1, 0x5000, 5);
	no_more(t);
	assert_int_equal(trace_counts(t)->repairs, 1);
	assert_int_equal(trace_counts(t)->double_allocs, 0);
	assert_int_equal(trace_counts(t)->unmatched_frees, 0);
	assert_int_equal(trace_counts(t)->events, 5);
	trace_close(t);
	compose_free(&c);
}

/* Farther ahead than one batch, and behind a release in a third thread that comes later still. */
static void search_decodes_ahead_and_takes_the_first(void **state)
{
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 1000, 0x1000, 1, 0);
	compose_chunk(&c, 1, 2, 0, 0, 65536);
	for (uint64_t i = 0; i < 500; i++)
		put_alloc(&c, 2000 + i * 10, 0x100000 + i * 16, 8, 0);
	put_free(&c, 50000, 0x1000);
	compose_chunk(&c, 1, 3, 0, 0, 65536);
	put_free(&c, 60000, 0x1000); /* of the block that thread 4 gets */
	compose_chunk(&c, 1, 4, 0, 0, 65536);
	put_alloc(&c, 1500, 0x1000, 2, 0);
	t = open_composed(&c);
	expect(t, EV_ALLOC, 1000, 1, 0x1000, 1);
	expect(t, EV_FREE, 1500, 2, 0x1000, 1);
	expect(t, EV_ALLOC, 1500, 4, 0x1000, 2);
	for (uint64_t i = 0; i < 500; i++)
		expect(t, EV_ALLOC, 2000 + i * 10, 2, 0x100000 + i * 16, 8);
	expect(t, EV_FREE, 60000, 3, 0x1000, 2);
	no_more(t);
	assert_int_equal(trace_counts(t)->repairs, 1);
	assert_int_equal(trace_counts(t)->events, 504);
	trace_close(t);
	compose_free(&c);
}

/* A CPU may read its clock before earlier instructions finish: another thread's release that is
 * noted up to a microsecond before the acquisition is applied after it. */
static void early_release_waits(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 2001, 0x5000, 5, 0);
	put_alloc(&c, 3000, 0x1000, 1, 0); /* exactly a microsecond after its release below */
	put_free(&c, 3001, 0x5000);
	compose_chunk(&c, 1, 2, 0, 0, 65536);
	put_free(&c, 2000, 0x1000);
	put_alloc(&c, 4000, 0x1000, 2, 0);
	t = open_composed(&c);
	expect(t, EV_ALLOC, 2000, 1, 0x1000, 1);
	e = expect(t, EV_FREE, 2000, 2, 0x1000, 1);
	assert_int_equal(e.flags, 0);
	expect(t, EV_ALLOC, 2001, 1, 0x5000, 5);
	expect(t, EV_FREE, 3001, 1, 0x5000, 5);
	expect(t, EV_ALLOC, 4000, 2, 0x1000, 2);
	no_more(t);
	assert_int_equal(trace_counts(t)->repairs, 1);
	assert_int_equal(trace_counts(t)->unmatched_frees, 0);
	assert_int_equal(trace_counts(t)->double_allocs, 0);
	assert_int_equal(trace_counts(t)->events, 5);
	assert_int_equal(t->live.count, 1);
	trace_close(t);
	compose_free(&c);
}

/* An acquisition so early that it took the block before: the other thread's next release is of
 * that block, and its next acquisition is the handed-over one. Not if no thread was early. */
static void early_release_took_the_one_before(void **state)
{
	for (int early = 0; early < 2; early++) {
		struct compose c;
		struct trace *t;
		struct event e;

		compose_begin(&c);
		compose_chunk(&c, 1, 1, 0, 0, 65536);
		put_alloc(&c, 1000, 0x1000, 1, 0);
		put_free(&c, 3000, 0x1000);
		put_alloc(&c, 3100, 0x1000, 2, 0); /* handed over */
		compose_chunk(&c, 1, 2, 0, 0, 65536);
		put_free(&c, early ? 2000 : 1999, 0x1000);
		t = open_composed(&c);
		expect(t, EV_ALLOC, 1000, 1, 0x1000, 1);
		expect(t, EV_FREE, early ? 2000 : 1999, 2, 0x1000, 1);
		if (early) {
			expect(t, EV_ALLOC, 3000, 1, 0x1000, 2);
			e = expect(t, EV_FREE, 3000, 1, 0x1000, 2);
			assert_int_equal(e.flags, 0);
		} else {
			e = next_event(t);
			assert_int_equal(e.kind, EV_FREE);
			assert_null(e.block);
			expect(t, EV_ALLOC, 3100, 1, 0x1000, 2);
		}
		no_more(t);
		assert_int_equal(trace_counts(t)->repairs, early);
		assert_int_equal(trace_counts(t)->unmatched_frees, !early);
		assert_int_equal(trace_counts(t)->events, 4);
		assert_int_equal(t->live.count, !early);
		trace_close(t);
		compose_free(&c);
	}
}

/* Later than a microsecond, not the next there, or realloc's block: a release of an unrecorded
 * block. */
static void early_release_is_no_other(void **state)
{
	for (int way = 0; way < 3; way++) {
		struct compose c;
		struct trace *t;
		struct event e;

		compose_begin(&c);
		compose_chunk(&c, 1, 1, 0, 0, 65536);
		if (way == 1)
			put_free(&c, 2050, 0x1000);
		put_alloc_api(&c, way == 0 ? 3001 : 2100, 0x1000, 1, 0,
		    way == 2 ? TRACE_API_REALLOC : TRACE_API_MALLOC);
		compose_chunk(&c, 1, 2, 0, 0, 65536);
		put_free(&c, 2000, 0x1000);
		t = open_composed(&c);
		for (int n = way == 1 ? 2 : 1; n; n--) {
			e = next_event(t);
			assert_int_equal(e.kind, EV_FREE);
			assert_null(e.block);
		}
		expect(t, EV_ALLOC, way == 0 ? 3001 : 2100, 1, 0x1000, 1);
		no_more(t);
		assert_int_equal(trace_counts(t)->repairs, 0);
		assert_int_equal(trace_counts(t)->unmatched_frees, way == 1 ? 2 : 1);
		assert_int_equal(t->live.count, 1);
		trace_close(t);
		compose_free(&c);
	}
}

/* Later than 100 us, by the same thread, or after another acquisition: not the missing release. */
static void no_release_drops_the_old_block(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 1000, 0x1000, 1, 0);
	put_free(&c, 101002, 0x1000);
	compose_chunk(&c, 1, 2, 0, 0, 65536);
	put_alloc(&c, 1001, 0x1000, 2, 0);
	put_free(&c, 1100, 0x1000);
	t = open_composed(&c);
	expect(t, EV_ALLOC, 1000, 1, 0x1000, 1);
	e = expect(t, EV_FREE, 1001, 2, 0x1000, 1);
	assert_int_equal(e.flags, EVENT_REPAIRED);
	e = expect(t, EV_ALLOC, 1001, 2, 0x1000, 2);
	assert_int_equal(e.flags, EVENT_REPAIRED);
	e = expect(t, EV_FREE, 1100, 2, 0x1000, 2);
	assert_int_equal(e.flags, 0);
	e = next_event(t); /* the late one finds no block */
	assert_int_equal(e.kind, EV_FREE);
	assert_null(e.block);
	assert_int_equal(e.flags, EVENT_REPAIRED);
	no_more(t);
	assert_int_equal(trace_counts(t)->double_allocs, 1);
	assert_int_equal(trace_counts(t)->unmatched_frees, 1);
	assert_int_equal(trace_counts(t)->repairs, 0);
	assert_int_equal(
	    trace_counts(t)->events, 4); /* the drop was not recorded, so not counted */
	trace_close(t);
	compose_free(&c);
}

/* Fruitless searches must not cost the square of the trace. */
static void useless_searches_are_bounded(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;
	struct err err;
	uint64_t n = 0;

	compose_begin(&c);
	for (uint32_t thread = 1; thread <= 8; thread++) {
		compose_chunk(&c, 1, thread, 0, 0, 1 << 20);
		for (uint64_t i = 0; i < 30000; i++)
			put_alloc(&c, 1000 + i, 0x1000, 1, 0);
	}
	t = open_composed(&c);
	while (trace_next(t, &e, &err) > 0)
		n++;
	assert_int_equal(trace_counts(t)->events, 240000);
	assert_int_equal(trace_counts(t)->double_allocs, 239999);
	assert_int_equal(n, 240000 + 239999);
	trace_close(t);
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(late_release_is_found),
	    cmocka_unit_test(early_release_waits),
	    cmocka_unit_test(early_release_took_the_one_before),
	    cmocka_unit_test(early_release_is_no_other),
	    cmocka_unit_test(search_decodes_ahead_and_takes_the_first),
	    cmocka_unit_test(no_release_drops_the_old_block),
	    cmocka_unit_test(useless_searches_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
