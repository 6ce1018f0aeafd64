#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "events.h"

/* A sound trace of one event, to be damaged. */
static void sound(struct compose *c)
{
	compose_begin(c);
	compose_chunk(c, 2, 0, 0, 0, 65536);
	def_info(c, "exe", "/bin/x");
	compose_chunk(c, 1, 1, 0, 0, 65536);
	put_alloc(c, 10, 0x1000, 1, 0);
	compose_end(c);
}

static int refused(struct compose *c, const char *words)
{
	struct err err = {""};
	struct trace *t = NULL;
	int r = trace_open(compose_save(c), &t, &err);

	assert_null(t);
	if (!strstr(err.text, words) || !strstr(err.text, c->path))
		fail_msg("\"%s\" lacks \"%s\" or the path", err.text, words);
	compose_free(c);
	return r;
}

static void refuses_what_is_no_trace(void **state)
{
	struct compose c;

	sound(&c);
	c.bytes[0] = 'X';
	assert_int_equal(refused(&c, "offset 0: not a whyoom trace"), -EINVAL);
	sound(&c);
	c.size = 0;
	assert_int_equal(refused(&c, "empty"), -ENODATA);
	sound(&c);
	memset(c.bytes, 0, 8); /* the magic is written last, when there is nothing else yet */
	assert_int_equal(refused(&c, "not a whyoom trace"), -EINVAL);
	sound(&c);
	memset(c.bytes, 0, 8);
	c.size = TRACE_SLOT_BYTES;
	assert_int_equal(refused(&c, "holds nothing yet"), -ENODATA);
	sound(&c);
	c.size = 7;
	assert_int_equal(refused(&c, "not a whyoom trace"), -EINVAL);
	sound(&c);
	c.size = 4095;
	assert_int_equal(refused(&c, "cut off at 4095 bytes"), -EINVAL);
	sound(&c);
	compose_header(&c)->slot_bytes = 4096;
	assert_int_equal(refused(&c, "damaged header"), -EINVAL);
	sound(&c);
	compose_header(&c)->major = 0;
	assert_int_equal(refused(&c, "damaged header"), -EINVAL);
}

static void a_newer_major_version_names_itself(void **state)
{
	struct compose c;

	sound(&c);
	compose_header(&c)->major = 3;
	compose_header(&c)->minor = 7;
	compose_header(&c)->header_bytes = 8192; /* it may look quite different */
	assert_int_equal(refused(&c, "trace format 3.7"), -ENOTSUP);
	sound(&c);
	compose_header(&c)->major = 4;
	assert_int_equal(refused(&c, "use a whyoom that reads format 4"), -ENOTSUP);
}

static void a_newer_minor_version_is_read(void **state)
{
	struct compose c;
	struct trace *t;

	sound(&c);
	compose_header(&c)->minor = 99;
	t = open_composed(&c);
	expect(t, EV_ALLOC, 10, 1, 0x1000, 1);
	no_more(t);
	assert_int_equal(trace_facts(t)->minor, 99);
	trace_close(t);
	compose_free(&c);
}

static void header_becomes_facts(void **state)
{
	const struct trace_facts *f;
	struct trace_header *h;
	struct compose c;
	struct trace *t;

	sound(&c);
	h = compose_header(&c);
	h->ppid = 17;
	h->image = 2;
	h->end_how = 2;
	h->end_code = 11;
	h->end_mono_ns = 5000;
	h->dropped[0] = 3;
	h->dropped[15] = 4;
	h->dropped_bytes = 1000;
	h->flags = TRACE_FLAG_BUDGET | TRACE_FLAG_FORKED | 1u << 20;
	t = open_composed(&c);
	f = trace_facts(t);
	assert_true(f->pid == 4711 && f->ppid == 17 && f->image == 2);
	assert_true(f->end_how == TRACE_END_SIGNAL && f->end_code == 11 && f->last_ns == 5000);
	assert_true(f->dropped_total == 7 && f->dropped[15] == 4 && f->dropped_bytes == 1000);
	assert_true(f->budget && f->forked && !f->root);
	assert_true(f->start_real_ns == 1700000000000000000);
	assert_int_equal(f->file_bytes, c.size);
	assert_string_equal(f->path, c.path);
	assert_string_equal(f->exe, "/bin/x");
	assert_null(f->argv);
	trace_close(t);
	compose_free(&c);
}

static void events_can_tell_the_end_and_the_budget(void **state)
{
	struct compose c;
	struct trace *t;

	compose_begin(&c);
	compose_header(&c)->end_how = 0;
	compose_chunk(&c, 1, 1, 0, 0, 65536);
	PUT_EVENT(&c, 10, TRACE_NOTICE, TRACE_NOTICE_BUDGET, 1 << 20);
	PUT_EVENT(&c, 20, TRACE_EXIT, 1, 5);
	t = open_composed(&c);
	assert_int_equal(trace_facts(t)->end_how, TRACE_END_NONE);
	next_event(t);
	assert_true(trace_facts(t)->budget);
	next_event(t);
	assert_int_equal(trace_facts(t)->end_how, TRACE_END_EXIT);
	assert_int_equal(trace_facts(t)->end_code, 5);
	trace_close(t);
	compose_free(&c);
}

/* Slots that were claimed and never written, a chunk that claims too much, one that reaches
 * beyond the end: the sound part of each is read, and tears are counted. */
static void damaged_chunks(void **state)
{
	struct compose c;
	struct trace *t;

	sound(&c);
	c.size += 3 * 65536; /* claimed, never written */
	c.bytes = realloc(c.bytes, c.capacity = c.size);
	memset(c.bytes + c.size - 3 * 65536, 0, 3 * 65536);
	compose_chunk(&c, 1, 2, 0, 0, 65536); /* impossible sizes */
	put_alloc(&c, 20, 0x2000, 2, 0);
	compose_head(&c)->bytes = 65537;
	compose_chunk(&c, 1, 3, 0, 0, 65536); /* committed reaches into the side area */
	put_alloc(&c, 30, 0x3000, 3, 0);
	compose_head(&c)->committed = 65536;
	compose_chunk(&c, 1, 4, 0, 0, 65536); /* more side records than there is room for */
	put_alloc(&c, 40, 0x4000, 4, 0);
	compose_head(&c)->side_count = 65;
	compose_chunk(&c, 9, 5, 0, 0, 65536); /* a type of the future: skipped */
	put_alloc(&c, 50, 0x5000, 5, 0);
	compose_chunk(&c, 1, 6, 0, 0, 1 << 20);
	put_alloc(&c, 60, 0x6000, 6, 0);
	c.size -= 65536 * 3 + 17; /* the file was cut */
	t = open_composed(&c);
	expect(t, EV_ALLOC, 10, 1, 0x1000, 1);
	expect(t, EV_ALLOC, 30, 3, 0x3000, 3);
	expect(t, EV_ALLOC, 40, 4, 0x4000, 4);
	expect(t, EV_ALLOC, 60, 6, 0x6000, 6);
	no_more(t);
	assert_int_equal(trace_facts(t)->torn_chunks, 4);
	trace_close(t);
	compose_free(&c);
}

/* The committed part itself is cut. */
static void cut_within_events(void **state)
{
	for (size_t cut = 65; cut < 140; cut++) {
		struct compose c;
		struct trace *t;
		struct event e;
		struct err err = {""};
		uint64_t n = 0;

		compose_begin(&c);
		compose_chunk(&c, 1, 1, 0, 0, 65536);
		for (uint64_t i = 0; i < 1000; i++)
			put_alloc(&c, 10 + i, 0x1000 + 16 * i, 100, 0);
		compose_end(&c);
		c.size = 65536 + cut;
		t = open_composed(&c);
		while (trace_next(t, &e, &err) > 0) {
			assert_int_equal(e.address, 0x1000 + 16 * n);
			n++;
		}
		assert_string_equal(err.text, "");
		assert_in_range(n, (cut - 64) / 6, (cut - 64) / 4);
		assert_int_equal(trace_facts(t)->torn_chunks, 1);
		trace_close(t);
		compose_free(&c);
	}
}

/* An end that is no multiple of a slot, behind slots that hold nothing. */
static void odd_sizes(void **state)
{
	for (size_t size = 65537; size < 5 * 65536; size += 30011) {
		struct compose c;
		struct trace *t = NULL;
		struct err err = {""};

		compose_begin(&c);
		c.bytes = realloc(c.bytes, size);
		memset(c.bytes + 65536, 0, size - 65536);
		c.size = c.capacity = size;
		if (trace_open(compose_save(&c), &t, &err))
			fail_msg("%s", err.text);
		no_more(t);
		trace_close(t);
		compose_free(&c);
	}
}

/* Holes of any size cost nothing. */
static void sparse_file(void **state)
{
	struct compose c;
	struct trace *t = NULL;
	struct err err = {""};

	sound(&c);
	compose_save(&c);
	if (truncate(c.path, 1ll << 42))
		skip(); /* this file system has no such sizes */
	if (trace_open(c.path, &t, &err))
		fail_msg("%s", err.text);
	expect(t, EV_ALLOC, 10, 1, 0x1000, 1);
	no_more(t);
	trace_close(t);
	compose_free(&c);
}

/* Impossibly many threads: counted together, without memory for each. */
static void absurdly_many_threads(void **state)
{
	const struct trace_thread *threads;
	struct compose c;
	struct trace *t;
	struct event e;
	struct err err;
	uint64_t sum = 0, n = 0;
	size_t count;

	compose_begin(&c);
	for (uint32_t chunk = 0; chunk < 16; chunk++) {
		compose_chunk(&c, 3, 0, chunk, 0, 1 << 20);
		for (uint32_t i = 0; i < 70000; i++, n++) {
			PUT_EVENT(&c, 0, TRACE_SHARED_THREAD, n + 1, 1);
			if (i % 100 == 0)
				put_free(&c, 0, 0x1000);
		}
	}
	t = open_composed(&c);
	while (trace_next(t, &e, &err) > 0)
		;
	count = trace_threads(t, &threads);
	assert_true(count <= THREADS_MAX);
	for (size_t i = 0; i < count; i++)
		sum += threads[i].frees;
	assert_int_equal(sum, 16 * 700);
	trace_close(t);
	compose_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(refuses_what_is_no_trace),
	    cmocka_unit_test(a_newer_major_version_names_itself),
	    cmocka_unit_test(a_newer_minor_version_is_read),
	    cmocka_unit_test(header_becomes_facts),
	    cmocka_unit_test(events_can_tell_the_end_and_the_budget),
	    cmocka_unit_test(damaged_chunks),
	    cmocka_unit_test(cut_within_events),
	    cmocka_unit_test(odd_sizes),
	    cmocka_unit_test(sparse_file),
	    cmocka_unit_test(absurdly_many_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
