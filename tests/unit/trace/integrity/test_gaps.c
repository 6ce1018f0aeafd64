#include "../events.h"

static void between_others(void **state)
{
	uint32_t room = 3;
	struct gaps g = {.room = &room};

	gaps_begin(&g, 0);
	gaps_enter(&g, 0);
	gaps_enter(&g, 40); /* it goes on */
	gaps_leave(&g, 0, 100, 7);
	gaps_leave(&g, 0, 120, 8); /* nothing began */
	gaps_enter(&g, 150);
	gaps_leave(&g, 0, 150 + GAP_MIN - 1, 9); /* too short */
	gaps_end(&g, true);
	gaps_begin(&g, 1);
	gaps_enter(&g, 10);
	gaps_leave(&g, 1, 60, 11);
	gaps_end(&g, true);
	gaps_rewind(&g);
	gaps_begin(&g, 0);
	assert_null(gaps_find(&g, 0, 1)); /* in the middle of one */
	gaps_rewind(&g);
	assert_int_equal(gaps_find(&g, 0, 0)->to, 100);
	assert_int_equal(gaps_find(&g, 0, 0)->ticks, 7);
	assert_null(gaps_find(&g, 0, 150));
	assert_null(gaps_find(&g, 1, 0));
	assert_int_equal(gaps_find(&g, 1, 10)->to, 60);
	assert_null(gaps_find(&g, 2, 10));
	gaps_fini(&g);
}

/* A chunk that was left half-way, or is torn, has no known gap. */
static void only_of_whole_chunks(void **state)
{
	uint32_t room = 3;
	struct gaps g = {.room = &room};

	for (int pass = 0; pass < 2; pass++) {
		gaps_rewind(&g);
		gaps_begin(&g, 0);
		gaps_enter(&g, 0);
		gaps_leave(&g, 0, 50, 1);
		assert_null(gaps_find(&g, 0, 0));
	}
	gaps_end(&g, true);
	gaps_begin(&g, 1);
	gaps_enter(&g, 0);
	gaps_leave(&g, 1, 50, 2);
	gaps_end(&g, false);
	gaps_begin(&g, 2);
	gaps_enter(&g, 0);
	gaps_leave(&g, 2, 50, 3);
	gaps_end(&g, true);
	assert_int_equal(g.known, 2);
	assert_int_equal(room, 1);
	gaps_begin(&g, 3);
	for (uint32_t at = 0; at < 100; at += 50) {
		gaps_enter(&g, at);
		gaps_leave(&g, 3, at + 20, 4); /* no room for both */
	}
	gaps_end(&g, true);
	assert_int_equal(g.known, 2);
	assert_int_equal(room, 1);
	gaps_rewind(&g);
	assert_non_null(gaps_find(&g, 0, 0));
	assert_null(gaps_find(&g, 1, 0));
	assert_non_null(gaps_find(&g, 2, 0));
	gaps_fini(&g);
}

struct seen {
	enum event_kind kind;
	uint32_t thread;
	uint64_t time_ns, address;
};

/* All events but blocks, from the beginning. */
static size_t pass(struct trace *t, struct seen *out, size_t room)
{
	struct event e;
	size_t n = 0;
	int r;

	trace_rewind_spaces(t);
	while ((r = trace_next(t, &e, NULL)) == 1) {
		assert_true(n < room);
		out[n++] = (struct seen){e.kind, e.thread, e.time_ns, e.address};
	}
	assert_int_equal(r, 0);
	return n;
}

static void blocks(struct compose *c, uint64_t ticks, uint64_t base, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		put_alloc(c, ticks + i, base + 64 * i, 64, 0);
}

/* A pass without blocks sees the same after any other pass: with gaps larger than one read, at
 * the beginning and the end of a chunk, and with a side area. */
static void passes_are_alike(void **state)
{
	static struct seen first[64], again[64];
	struct compose c;
	struct trace *t;
	struct event e;
	size_t n;

	compose_begin(&c);
	for (uint32_t thread = 1; thread <= 3; thread++) {
		for (uint32_t chunk = 0; chunk < 2; chunk++) {
			uint64_t now = 1000000 * chunk + thread, base = (uint64_t)thread << 32;

			compose_chunk(&c, 1, thread, chunk, now, 1 << 20);
			base += chunk << 28;
			if (thread == 1)
				PUT_EVENT(&c, now + 1, TRACE_UNMAP, 0x1000, 1, 0, 0);
			blocks(&c, now + 10, base, thread == 2 ? 60000 : 300);
			PUT_EVENT(&c, now + 70000, TRACE_UNMAP, 0x2000, 2, 0, 0);
			blocks(&c, now + 70001, base + (1 << 24), 2);
			PUT_EVENT(&c, now + 70100, TRACE_UNMAP, 0x3000, 3, 0, 0);
			PUT_EVENT(&c, now + 70100, TRACE_UNMAP, 0x4000, 4, 0, 0);
			blocks(&c, now + 70200, base + (1 << 25), 100);
			if (thread != 3)
				PUT_EVENT(&c, now + 80000, TRACE_UNMAP, 0x5000, 5, 0, 0);
			else if (chunk)
				put_side(&c, now + 70050, TRACE_ALLOC, base + (1 << 27), 32, 0, 0);
		}
	}
	t = open_composed(&c);
	n = pass(t, first, 64);
	assert_int_equal(n, 2 * (5 + 4 + 3) + 1);
	assert_true(t->streams[1].gaps.known >= 4);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pass(t, again, 64), n);
		assert_memory_equal(first, again, n * sizeof(*first));
		trace_rewind(t);
		for (int k = 0; k < 1000 << 6 * i && trace_next(t, &e, NULL) == 1; k++)
			;
	}
	trace_close(t);
	/* The same after a whole pass, and after half of one. */
	for (int events = 90000; events < 500000; events += 400000) {
		assert_int_equal(trace_open(c.path, &t, NULL), 0);
		for (int k = 0; k < events && trace_next(t, &e, NULL) == 1; k++)
			;
		for (int i = 0; i < 2; i++) {
			assert_int_equal(pass(t, again, 64), n);
			assert_memory_equal(first, again, n * sizeof(*first));
		}
		trace_close(t);
	}
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(between_others),
	    cmocka_unit_test(only_of_whole_chunks),
	    cmocka_unit_test(passes_are_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
