#include <math.h>

#include "events.h"

#include "trace/xxh64.h"

static const struct event *find_level(const struct event *e, uint32_t key, uint64_t value)
{
	for (uint32_t i = 0; i < e->level_count; i++)
		if (e->levels[i].key == key && e->levels[i].value == value)
			return e;
	return NULL;
}

/* Every kind of event, each field with a value of its own. */
static void every_kind(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	def_string(&c, 9, "/lib/x.so");
	DEF_STACK(&c, 5, 0, 0, 0x111);
	compose_chunk(&c, 1, 3, 0, 100, 65536);
	put_alloc_api(&c, 110, 0x7f0000001000, 64, 5, TRACE_API_ALIGNED);
	put_byte(&c, 1 | 0x80 | 1 << 4); /* calloc, the same stack, the same address + 16 */
	put_varint(&c, 10);
	put_svarint(&c, 2);
	put_varint(&c, 300);
	c.ticks += 10;
	c.address += 16;
	PUT_EVENT(&c, 130, 16, 0x10000, 0x2000, 3, 8, 17, 1, 9, 4096, 5);
	PUT_EVENT(&c, 140, 17, 0x10000, 0x1000, 12, 4);
	PUT_EVENT(&c, 150, 18, 0x10000, 0x1000);
	PUT_EVENT(&c, 160, 19, 0x11000, 0x1000, 8);
	PUT_EVENT(&c, 170, 20, 0x5000, 0x8000, 5);
	PUT_EVENT(&c, 180, 21, 2, 9, 1, 12, 1 << 30, 64, 0x10000, 5, 2, 1, 111, 33, 222);
	PUT_EVENT(&c, 190, 22, 7, 1, 128, 1ull << 40);
	PUT_EVENT(&c, 200, 23, 999, 2, 1, 5, 2, 6);
	PUT_EVENT(&c, 210, 24);
	PUT_EVENT(&c, 220, 26, 11, 1, 0xdead);
	PUT_EVENT(&c, 230, 27, 4712);
	PUT_EVENT(&c, 240, 28, 4, 17);
	PUT_EVENT(&c, 250, 29, 4712, 2, 9, 3);
	PUT_EVENT(&c, 260, 37, 0x1003, 5, 5, 4);
	PUT_EVENT(&c, 270, 38, 0x1003, 1);
	PUT_EVENT(&c, 280, 25, 1, 42);
	t = open_composed(&c);
	e = expect(t, EV_ALLOC, 110, 3, 0x7f0000001000, 64);
	assert_int_equal(e.api, TRACE_API_ALIGNED);
	assert_int_equal(e.stack, 1);
	assert_int_equal(e.block->stack, 1);
	e = expect(t, EV_ALLOC, 120, 3, 0x7f0000001010, 300);
	assert_int_equal(e.api, TRACE_API_CALLOC);
	assert_int_equal(e.stack, 1);
	e = next_event(t);
	assert_int_equal(e.kind, EV_MAP);
	assert_true(e.address == 0x10000 && e.size == 0x2000 && e.api == 8 && e.stack == 1);
	assert_true(e.u.map.prot == 3 && e.u.map.flags == 17 && e.u.map.backing == 1 &&
		    e.u.map.offset == 4096);
	assert_string_equal(e.u.map.name, "/lib/x.so");
	assert_null(e.block);
	e = next_event(t);
	assert_int_equal(e.kind, EV_UNMAP);
	assert_true(e.address == 0x10000 && e.size == 0x1000 && e.api == 12 && e.u.map.flags == 4);
	e = next_event(t);
	assert_int_equal(e.kind, EV_UNUNMAP);
	assert_true(e.address == 0x10000 && e.size == 0x1000);
	e = next_event(t);
	assert_int_equal(e.kind, EV_ADVISE);
	assert_true(e.address == 0x11000 && e.size == 0x1000 && e.u.advise.advice == 8);
	e = next_event(t);
	assert_int_equal(e.kind, EV_BRK);
	assert_true(e.u.brk.old_end == 0x5000 && e.u.brk.new_end == 0x8000 && e.stack == 1);
	assert_true(e.address == 0x5000 && e.size == 0x3000);
	e = next_event(t);
	assert_int_equal(e.kind, EV_FAILED);
	assert_true(e.space == 2 && e.api == 9 && e.u.failed.why == 1 && e.u.failed.result == 12);
	assert_true(
	    e.size == 1 << 30 && e.u.failed.alignment == 64 && e.u.failed.old_address == 0x10000);
	assert_int_equal(e.stack, 1);
	assert_int_equal(e.level_count, 2);
	assert_non_null(find_level(&e, 1, 111));
	assert_non_null(find_level(&e, 33, 222));
	e = next_event(t);
	assert_true(e.kind == EV_LEVEL && e.space == 7 && e.u.child.pid == 0 && e.level_count == 1);
	assert_non_null(find_level(&e, 128, 1ull << 40));
	e = next_event(t);
	assert_true(e.kind == EV_LEVEL && e.u.child.pid == 999 && e.level_count == 2);
	assert_int_equal(next_event(t).kind, EV_THREAD_EXIT);
	e = next_event(t);
	assert_true(e.kind == EV_SIGNAL && e.u.end.how == TRACE_END_SIGNAL && e.u.end.code == 11 &&
		    e.address == 0xdead);
	e = next_event(t);
	assert_true(e.kind == EV_FORK && e.u.child.pid == 4712);
	e = next_event(t);
	assert_true(e.kind == EV_NOTICE && e.u.notice.what == 4 && e.u.notice.value == 17);
	e = next_event(t);
	assert_true(e.kind == EV_CHILD_END && e.u.child.pid == 4712 && e.u.child.how == 2 &&
		    e.u.child.code == 9 && e.u.child.flags == 3);
	e = expect(t, EV_ALLOC, 260, 3, 0x1003, 5);
	assert_int_equal(e.api, TRACE_API_ALLOCATOR);
	e = expect(t, EV_FREE, 270, 3, 0x1003, 5);
	assert_int_equal(e.flags, EVENT_REALLOC);
	e = next_event(t);
	assert_true(e.kind == EV_EXIT && e.u.end.how == 1 && e.u.end.code == 42);
	no_more(t);
	assert_int_equal(trace_counts(t)->events, 18);
	assert_int_equal(trace_facts(t)->torn_chunks, 0);
	assert_int_equal(trace_facts(t)->last_ns, 280);
	trace_close(t);
	compose_free(&c);
}

static void samples(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 1 << 20);
	PUT_EVENT(&c, 20, TRACE_SAMPLED_ALLOC, 0x1003, 1000, 4096, 0, TRACE_API_CALLOC);
	PUT_EVENT(&c, 30, TRACE_SAMPLED_ALLOC, 0x3000, 1 << 20, 4096, 0, 0);
	PUT_EVENT(&c, 40, TRACE_SAMPLED_ALLOC, 0x4000, 0, 4096, 0, 0); /* damage */
	PUT_EVENT(&c, 50, TRACE_SAMPLED_ALLOC, 0x5000, 1, 1ull << 60, 0, 0);
	put_alloc(&c, 70, 0x7000, 77, 0);
	PUT_EVENT(&c, 80, TRACE_FREE_WIDE, 0x1003, 0);
	t = open_composed(&c);
	e = next_event(t);
	assert_true(e.kind == EV_ALLOC && e.address == 0x1003 && e.api == TRACE_API_CALLOC);
	assert_int_equal(e.size, 1000);
	/* 1 - exp(-1000/4096) = 0.21662 */
	assert_int_equal(block_bytes(e.block), 4616);
	assert_in_range(block_count(e.block), 4, 5);
	assert_true(fabs(block_variance(e.block) / (1000.0 * 1000 * 4.6164 * 3.6164) - 1) < 1e-3);
	e = next_event(t); /* surely chosen */
	assert_int_equal(block_bytes(e.block), 1 << 20);
	assert_int_equal(block_count(e.block), 1);
	for (int i = 0; i < 3; i++) {
		e = next_event(t);
		assert_true(e.kind == EV_ALLOC && e.block->mean == 0);
		assert_true(block_bytes(e.block) == e.size && block_count(e.block) == 1);
		assert_true(block_variance(e.block) == 0);
	}
	e = next_event(t);
	assert_true(e.kind == EV_FREE && block_bytes(e.block) == 4616);
	no_more(t);
	trace_close(t);
	compose_free(&c);
}

static void unknown_kinds_are_skipped(void **state)
{
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 1 << 20);
	put_alloc(&c, 10, 0x1000, 1, 0);
	PUT_EVENT(&c, 20, 4000, 1, 2, 3);
	PUT_EVENT(&c, 30, TRACE_CHECKPOINT, 1, 2, 3, 4); /* reserved */
	/* One whose body is larger than one read. */
	put_byte(&c, 15);
	put_varint(&c, 77);
	put_varint(&c, 600001);
	put_varint(&c, 10); /* dt */
	c.ticks += 10;
	for (int i = 0; i < 600000; i++)
		put_byte(&c, 0xff);
	/* And a known one with more behind its fields. */
	PUT_EVENT(&c, 50, 27, 5, 6, 7, 8);
	put_alloc(&c, 60, 0x2000, 2, 0);
	t = open_composed(&c);
	expect(t, EV_ALLOC, 10, 1, 0x1000, 1);
	assert_int_equal(next_event(t).u.child.pid, 5);
	expect(t, EV_ALLOC, 60, 1, 0x2000, 2);
	no_more(t);
	assert_int_equal(trace_facts(t)->unknown_records, 3);
	assert_int_equal(trace_facts(t)->torn_chunks, 0);
	assert_int_equal(trace_counts(t)->events, 3);
	trace_rewind(t);
	for (int i = 0; i < 3; i++)
		next_event(t);
	no_more(t);
	assert_int_equal(trace_facts(t)->unknown_records, 3); /* counted once */
	trace_close(t);
	compose_free(&c);
}

/* Many windows, and events of every length across their borders. */
static void windows(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;
	uint64_t n = 0, ticks = 0, seed = 1;
	struct xxh64 x;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 1 << 20);
	while (c.at - c.chunk < (1 << 20) - 64 - 2048 - 50) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		ticks += seed >> (40 + seed % 20);
		if (seed >> 63)
			put_alloc(&c, ticks, (seed >> 20) & ~7ull, seed >> (16 + seed % 48), 0);
		else
			PUT_EVENT(&c, ticks, TRACE_LEVEL, 0, 2, seed >> 50, seed, 1, seed >> 9);
		n++;
	}
	xxh64_init(&x);
	xxh64_add(&x, c.bytes + c.chunk + 64, c.at - c.chunk - 64);
	compose_seal(&c, xxh64_done(&x));
	t = open_composed(&c);
	t->context.window = 100; /* smaller than some events */
	seed = 1;
	ticks = 0;
	for (uint64_t i = 0; i < n; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		ticks += seed >> (40 + seed % 20);
		e = next_event(t);
		if (e.kind == EV_FREE) /* the address was live: dropped first */
			e = next_event(t);
		assert_int_equal(e.time_ns, ticks);
		if (seed >> 63) {
			assert_int_equal(e.kind, EV_ALLOC);
			assert_true(e.address == ((seed >> 20) & ~7ull) &&
				    e.size == seed >> (16 + seed % 48));
		} else {
			assert_int_equal(e.kind, EV_LEVEL);
			assert_true(e.levels[0].value == seed && e.levels[1].value == seed >> 9);
		}
	}
	no_more(t);
	assert_int_equal(trace_counts(t)->events, n);
	assert_int_equal(trace_facts(t)->bad_checksums, 0);
	assert_int_equal(trace_facts(t)->torn_chunks, 0);
	assert_int_equal(trace_bytes_read(t), trace_facts(t)->event_bytes);
	trace_close(t);
	compose_free(&c);
}

static void wrong_checksum_is_counted_and_read(void **state)
{
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 10, 0x1000, 1, 0);
	compose_seal(&c, 12345);
	t = open_composed(&c);
	expect(t, EV_ALLOC, 10, 1, 0x1000, 1);
	no_more(t);
	assert_int_equal(trace_facts(t)->bad_checksums, 1);
	trace_close(t);
	compose_free(&c);
}

/* A contradiction of the format ends its chunk; the next chunk and other threads go on. */
static void contradictions_end_a_chunk(void **state)
{
	for (int what = 0; what < 10; what++) {
		struct compose c;
		struct trace *t;

		compose_begin(&c);
		compose_chunk(&c, 1, 1, 0, 0, 65536);
		put_alloc(&c, 10, 0x1000, 1, 0);
		switch (what) {
		case 0: /* a tag of no kind */
			put_byte(&c, 0);
			break;
		case 1: /* a compact kind that does not exist */
			put_byte(&c, 7);
			put_varint(&c, 1);
			put_varint(&c, 1);
			break;
		case 2: /* cut within a compact event */
			put_byte(&c, 1);
			put_byte(&c, 0x80);
			break;
		case 3: /* a length beyond the committed part */
			put_byte(&c, 15);
			put_varint(&c, 22);
			put_varint(&c, 5000);
			put_byte(&c, 1);
			break;
		case 4: /* a known kind with too few fields */
			PUT_EVENT(&c, 11, TRACE_MAP, 1, 2, 3);
			put_alloc(&c, 12, 0x8000, 1, 0);
			break;
		case 5: /* time that overflows */
			put_byte(&c, 2);
			put_varint(&c, UINT64_MAX);
			put_svarint(&c, 0);
			put_alloc(&c, 12, 0x8000, 1, 0);
			break;
		case 6: /* more levels than there is room for */
			PUT_EVENT(&c, 11, TRACE_LEVEL, 0, 1ull << 60, 1, 2);
			break;
		case 7: /* larger than any address space */
			put_alloc(&c, 11, 0x8000, TRACE_SIZE_LIMIT, 0);
			break;
		case 8:
			PUT_EVENT(&c, 11, TRACE_SAMPLED_ALLOC, 0x8000, TRACE_SIZE_LIMIT, 1, 0, 0);
			break;
		case 9:
			PUT_EVENT(
			    &c, 11, TRACE_MAP, 0x8000, TRACE_SIZE_LIMIT, 3, 8, 17, 1, 0, 0, 1);
			break;
		}
		compose_chunk(&c, 1, 1, 1, 1000, 65536);
		put_alloc(&c, 2000, 0x2000, 2, 0);
		compose_chunk(&c, 1, 2, 0, 0, 65536);
		put_alloc(&c, 1500, 0x3000, 3, 0);
		t = open_composed(&c);
		expect(t, EV_ALLOC, 10, 1, 0x1000, 1);
		expect(t, EV_ALLOC, 1500, 2, 0x3000, 3);
		expect(t, EV_ALLOC, 2000, 1, 0x2000, 2);
		no_more(t);
		assert_int_equal(trace_facts(t)->torn_chunks, 1);
		trace_close(t);
		compose_free(&c);
	}
}

/* A signal handler's events take their place by time, whatever their order in the side area. */
static void side_records(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 2, 0, 0, 0, 65536);
	DEF_STACK(&c, 5, 0, 0, 0x111);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 100, 0x1000, 1, 0);
	put_alloc(&c, 200, 0x2000, 2, 0);
	put_side(&c, 150, TRACE_ALLOC, 0x5001, 7, 5, TRACE_API_CALLOC << 4);
	put_side(&c, 300, TRACE_FREE, 0x1000, 0, 0, 0);
	put_side(&c, 160, TRACE_FREE, 0x5001, 0, 0, 0);
	put_side(&c, 170, TRACE_UNFREE, 0x5001, 0, 0, 0);
	compose_chunk(&c, 1, 1, 1, 250, 65536);
	put_alloc(&c, 400, 0x3000, 3, 0);
	t = open_composed(&c);
	expect(t, EV_ALLOC, 100, 1, 0x1000, 1);
	e = expect(t, EV_ALLOC, 150, 1, 0x5001, 7);
	assert_int_equal(e.api, TRACE_API_CALLOC);
	assert_int_equal(e.stack, 1);
	expect(t, EV_FREE, 160, 1, 0x5001, 7);
	expect(t, EV_UNFREE, 170, 1, 0x5001, 7);
	expect(t, EV_ALLOC, 200, 1, 0x2000, 2);
	expect(t, EV_FREE, 300, 1, 0x1000, 1);
	expect(t, EV_ALLOC, 400, 1, 0x3000, 3);
	no_more(t);
	assert_int_equal(trace_facts(t)->torn_chunks, 0);
	trace_close(t);
	compose_free(&c);
}

/* Threads without a chunk of their own share one; its events name their threads. */
static void shared_chunks(void **state)
{
	const struct trace_thread *threads;
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	compose_chunk(&c, 3, 0, 0, 0, 65536);
	PUT_EVENT(&c, 5, TRACE_SHARED_THREAD, 7, 1007);
	put_alloc(&c, 10, 0x1000, 1, 0);
	put_free_realloc(&c, 20, 0x1000);
	PUT_EVENT(&c, 25, TRACE_SHARED_THREAD, 8, 1008);
	put_alloc_api(&c, 26, 0x2000, 2, 0, TRACE_API_REALLOC); /* not thread 7's other half */
	PUT_EVENT(&c, 27, TRACE_SHARED_THREAD, 7, 1007);
	compose_chunk(&c, 1, 7, 0, 28, 65536);
	put_alloc_api(
	    &c, 30, 0x3000, 3, 0, TRACE_API_REALLOC); /* this is: the thread got a chunk */
	t = open_composed(&c);
	expect(t, EV_ALLOC, 10, 7, 0x1000, 1);
	expect(t, EV_FREE, 20, 7, 0x1000, 1);
	e = expect(t, EV_ALLOC, 26, 8, 0x2000, 2);
	assert_int_equal(e.flags, 0);
	e = expect(t, EV_ALLOC, 30, 7, 0x3000, 3);
	assert_int_equal(e.flags, EVENT_REALLOC);
	assert_true(e.old->address == 0x1000);
	no_more(t);
	assert_int_equal(trace_counts(t)->events, 4); /* the thread's name is no event */
	assert_int_equal(trace_threads(t, &threads), 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(threads[i].serial == 7 ? 2 : 1, threads[i].allocs);
	trace_close(t);
	compose_free(&c);
}

/* Chunks by sequence, wherever they lie; and time that runs backwards is held. */
static void chunks_in_sequence(void **state)
{
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	compose_chunk(&c, 1, 1, 1, 500, 65536);
	put_free(&c, 600, 0x1000);
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	put_alloc(&c, 100, 0x1000, 1, 0);
	compose_chunk(&c, 1, 1, 2, 550, 65536);
	put_alloc(&c, 560, 0x1000, 2, 0); /* claims to be before the release */
	t = open_composed(&c);
	expect(t, EV_ALLOC, 100, 1, 0x1000, 1);
	expect(t, EV_FREE, 600, 1, 0x1000, 1);
	expect(t, EV_ALLOC, 600, 1, 0x1000, 2);
	no_more(t);
	trace_close(t);
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_kind),
	    cmocka_unit_test(samples),
	    cmocka_unit_test(unknown_kinds_are_skipped),
	    cmocka_unit_test(windows),
	    cmocka_unit_test(wrong_checksum_is_counted_and_read),
	    cmocka_unit_test(contradictions_end_a_chunk),
	    cmocka_unit_test(side_records),
	    cmocka_unit_test(shared_chunks),
	    cmocka_unit_test(chunks_in_sequence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
