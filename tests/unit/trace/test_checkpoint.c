/* Which checkpoint counts, and that each event is read once, whatever the moment of the kill. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "events.h"

#include "trace/xxh64.h"

static void part(struct compose *c, uint32_t number, uint32_t sequence)
{
	compose_chunk(c, TRACE_CHUNK_CHECKPOINT, 0, sequence, 0, 65536);
	compose_head(c)->tid = number;
	PUT_EVENT(c, 0, TRACE_SHARED_THREAD, 1, 101);
}

static void seal(struct compose *c)
{
	struct trace_chunk *head = compose_head(c);
	struct xxh64 hash;

	head->committed = (uint32_t)(c->at - c->chunk - 64);
	xxh64_init(&hash);
	xxh64_add(&hash, c->bytes + c->chunk + 64, head->committed);
	compose_seal(c, xxh64_done(&hash));
}

static void slot(struct compose *c, unsigned at, uint32_t number, uint32_t parts, uint64_t ticks)
{
	compose_header(c)->checkpoint[at] = (struct trace_checkpoint){number, parts, ticks};
}

/* Two checkpoints in the file, each of two parts and two blocks, and a thread's chunk from
 * before the first until after the second. */
static void begin(struct compose *c)
{
	compose_begin(c);
	for (uint32_t number = 1; number <= 2; number++)
		for (uint32_t i = 2; i-- > 0;) { /* not in the file's order */
			part(c, number, i);
			put_alloc(c, 10 + 10 * i, 0x1000 * number + 16 * i, number, 0);
			if (i)
				PUT_EVENT(c, 100 * number, TRACE_CHECKPOINT, 5, 1000, 60, 6000, 50,
				    5000, 2000, number - 1);
			seal(c);
		}
	compose_chunk(c, TRACE_CHUNK_EVENTS, 1, 3, 50, 65536);
	put_alloc(c, 60, 0x9000, 9, 0);
	put_alloc(c, 150, 0xa000, 10, 0);
	put_alloc(c, 200, 0xb000, 11, 0);
	put_alloc(c, 201, 0xc000, 12, 0);
	compose_end(c);
	slot(c, 1, 1, 2, 100);
	slot(c, 0, 2, 2, 200);
}

static struct trace_checkpoint_facts read_blocks(
    struct compose *c, size_t n, const uint64_t *blocks)
{
	struct trace *t = open_composed(c);
	struct trace_checkpoint_facts facts;
	struct event e;
	struct err err = {""};
	size_t found = 0;

	for (int pass = 0; pass < 2; pass++) { /* and again, the same */
		for (found = 0; trace_next(t, &e, &err) > 0;) {
			if (e.kind == EV_CHECKPOINT)
				continue;
			assert_int_equal(e.kind, EV_ALLOC);
			assert_true(found < n);
			assert_int_equal(e.address, blocks[found]);
			found++;
		}
		assert_string_equal(err.text, "");
		assert_int_equal(found, n);
		trace_rewind(t);
	}
	facts = trace_facts(t)->checkpoint;
	assert_int_equal(trace_facts(t)->torn_chunks, 0);
	trace_close(t);
	compose_free(c);
	return facts;
}
#define READ(c, ...)                                                                               \
	read_blocks((c), sizeof((uint64_t[]){__VA_ARGS__}) / 8, (uint64_t[]){__VA_ARGS__})

static struct trace_chunk *head_of(struct compose *c, unsigned n)
{
	return (struct trace_chunk *)(c->bytes + (1 + n) * 65536);
}

static void the_newest_counts(void **state)
{
	struct trace_checkpoint_facts f;
	struct compose c;

	begin(&c);
	f = READ(&c, 0x2000, 0x2010, 0xc000);
	assert_true(f.number == 2 && f.parts == 2 && f.until_ns == 200);
	assert_true(!f.damaged && !f.unfinished);
}

static void one_that_was_not_finished_is_no_loss(void **state)
{
	struct trace_checkpoint_facts f;
	struct compose c;

	begin(&c); /* killed before the second was in the header */
	slot(&c, 0, 0, 2, 200);
	f = READ(&c, 0x1000, 0x1010, 0xa000, 0xb000, 0xc000);
	assert_true(f.number == 1 && !f.damaged && f.unfinished == 2 && f.until_ns == 100);
	begin(&c); /* before the first was */
	slot(&c, 0, 0, 0, 0);
	slot(&c, 1, 0, 2, 100);
	f = READ(&c, 0x9000, 0xa000, 0xb000, 0xc000);
	assert_true(!f.number && !f.damaged && f.unfinished == 4 && !f.until_ns);
}

static void what_is_not_whole_is_not_used(void **state)
{
	for (unsigned how = 0; how < 6; how++) {
		struct trace_checkpoint_facts f;
		struct compose c;

		begin(&c);
		switch (how) {
		case 0:
			head_of(&c, 2)->sealed = 0;
			break;
		case 1:
			head_of(&c, 3)->magic = 0; /* a hole */
			break;
		case 2:
			head_of(&c, 2)->sequence = 0; /* twice the same */
			break;
		case 3:
			head_of(&c, 3)->committed = 65536;
			break;
		case 4:
			slot(&c, 0, 2, 3, 200);
			break;
		case 5:
			slot(&c, 0, 2, 0, 200);
			break;
		}
		f = READ(&c, 0x1000, 0x1010, 0xa000, 0xb000, 0xc000);
		assert_true(f.number == 1 && f.damaged == 2 && f.until_ns == 200);
		begin(&c); /* nor was the one before */
		head_of(&c, 0)->sealed = head_of(&c, 2)->sealed = 0;
		f = READ(&c, 0x9000, 0xa000, 0xb000, 0xc000);
		assert_true(!f.number && f.damaged == 2 && f.until_ns == 200);
	}
}

static void ticks_that_cannot_be(void **state)
{
	struct trace_checkpoint_facts f;
	struct compose c;

	begin(&c); /* later than everything: then nothing else counts */
	slot(&c, 0, 2, 2, UINT64_MAX - 1);
	f = READ(&c, 0x2000, 0x2010);
	assert_int_equal(f.number, 2);
	begin(&c);
	slot(&c, 0, 2, 2, UINT64_MAX);
	f = READ(&c, 0x1000, 0x1010, 0xa000, 0xb000, 0xc000);
	assert_int_equal(f.damaged, 2);
	begin(&c);
	slot(&c, 0, UINT32_MAX, UINT32_MAX, 0);
	f = READ(&c, 0x1000, 0x1010, 0xa000, 0xb000, 0xc000);
	assert_int_equal(f.damaged, UINT32_MAX);
}

static void periods_add_up(void **state)
{
	const struct trace_replaced *r;
	struct compose c;
	struct trace *t;
	struct event e;
	struct err err = {""};
	unsigned seen = 0;

	begin(&c);
	slot(&c, 0, 0, 0, 0); /* the first */
	part(&c, 1, 2);
	PUT_EVENT(&c, 90, TRACE_CHECKPOINT, 95, 1, 2, UINT64_MAX, 4, 5, 6, 7, 8, 9, 10);
	seal(&c);
	slot(&c, 1, 1, 3, 100);
	t = open_composed(&c);
	while (trace_next(t, &e, &err) > 0) {
		if (e.kind != EV_CHECKPOINT)
			continue;
		if (!seen++)
			assert_true(e.time_ns == 100 && e.u.period.begin_ns == 5 &&
				    e.u.period.most_bytes == 2000);
		else /* of another thread's clock, say: it ends before it begins, and comes late */
			assert_true(e.time_ns == 100 && e.u.period.begin_ns == 95);
	}
	r = &trace_counts(t)->replaced;
	assert_true(r->periods == 2 && r->trace_bytes == 1001 && r->acquired == 62 &&
		    r->acquired_bytes == UINT64_MAX && r->released == 54 &&
		    r->released_bytes == 5005 && r->left_out == 7);
	trace_rewind(t);
	assert_int_equal(trace_counts(t)->replaced.periods, 0);
	trace_close(t);
	compose_free(&c);
}

/* Side records have their own times; the checkpoint tells a thread's state before it; a period
 * outside of one is ignored. */
static void what_came_before_does_not_count(void **state)
{
	struct compose c;
	struct trace *t;
	struct event e;

	compose_begin(&c);
	part(&c, 1, 0);
	PUT_EVENT(&c, 40, TRACE_TASK, 0x500);
	seal(&c);
	compose_chunk(&c, TRACE_CHUNK_EVENTS, 1, 0, 50, 65536);
	PUT_EVENT(&c, 60, TRACE_TASK, 0x600);
	put_free_realloc(&c, 70, 0x9000);
	PUT_EVENT(&c, 80, TRACE_MAP, 0x10000, 0x2000, 3, 8, 0, 0, 0, 0, 0);
	PUT_EVENT(&c, 110, TRACE_CHECKPOINT, 5, 1000, 60, 6000, 50, 5000, 2000, 0);
	put_side(&c, 99, TRACE_ALLOC, 0x7000, 7, 0, 0);
	put_side(&c, 115, TRACE_ALLOC, 0x8000, 8, 0, 0);
	put_alloc_api(&c, 120, 0xa000, 10, 0, TRACE_API_REALLOC);
	slot(&c, 0, 1, 1, 100);
	t = open_composed(&c);
	expect(t, EV_ALLOC, 115, 1, 0x8000, 8);
	e = expect(t, EV_ALLOC, 120, 1, 0xa000, 10);
	assert_true(e.task == 1 && e.flags == 0);
	no_more(t);
	assert_int_equal(trace_counts(t)->tasks, 1);
	assert_int_equal(trace_counts(t)->unmatched_frees, 0);
	assert_int_equal(trace_facts(t)->unknown_records, 1);
	trace_close(t);
	compose_free(&c);
}

/* During the read the program makes a checkpoint, and listed chunks vanish. */
static void replaced_while_it_is_read(void **state)
{
	struct trace_checkpoint now = {3, 1, 300};
	struct compose c;
	struct trace *t;
	struct event e;
	struct err err = {""};
	int r;
	FILE *f;

	begin(&c);
	t = open_composed(&c);
	next_event(t);
	f = fopen(c.path, "r+");
	assert_non_null(f);
	fseek(f, 344, SEEK_SET);
	assert_int_equal(fwrite(&now, sizeof(now), 1, f), 1);
	fclose(f);
	while ((r = trace_next(t, &e, &err)) > 0)
		;
	assert_int_equal(r, -EAGAIN);
	assert_non_null(strstr(err.text, "read it once more"));
	trace_close(t);
	compose_free(&c);
}

static void a_part_may_fill_its_chunk(void **state)
{
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	part(&c, 1, 0);
	while (c.at + 16 < c.chunk + 65536)
		put_alloc(&c, c.ticks + 1, 0x1000 + 16 * c.ticks, 1, 0);
	seal(&c);
	assert_true(compose_head(&c)->committed > 65536 - 64 - TRACE_SIDE_MAX * 32);
	slot(&c, 0, 1, 1, 1 << 20);
	t = open_composed(&c);
	for (uint64_t i = 0; i < 13000; i++)
		next_event(t);
	assert_int_equal(trace_facts(t)->checkpoint.number, 1);
	trace_close(t);
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_newest_counts),
	    cmocka_unit_test(one_that_was_not_finished_is_no_loss),
	    cmocka_unit_test(what_is_not_whole_is_not_used),
	    cmocka_unit_test(ticks_that_cannot_be),
	    cmocka_unit_test(periods_add_up),
	    cmocka_unit_test(what_came_before_does_not_count),
	    cmocka_unit_test(replaced_while_it_is_read),
	    cmocka_unit_test(a_part_may_fill_its_chunk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
