/* test_chunk_writer.c - chunks: filled, sealed, passed from thread to thread, and bounded. */
#include "../under.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/xxh64.h"
#include "shim.h"
#include "thread/thread.h"

static struct stack_start nowhere;

static void write_events(unsigned count, uint64_t size)
{
	struct note n = note_enter(__builtin_return_address(0));

	for (unsigned i = 0; i < count; i++)
		note_alloc(n, TRACE_API_MALLOC, (void *)(0x10000 + 16ul * (i % 5000)),
		    size + i % 100, &nowhere);
	note_leave(n);
}

static void test_chunks_follow(void **state)
{
	struct under_trace *t;
	unsigned sealed = 0, own = 0;

	assert_int_equal(under_begin(1 << 30), 0);
	write_events(200000, 16);
	t = under_read();
	assert_int_equal(t->errors, 0);
	assert_int_equal(under_count(t, TRACE_ALLOC), 200000);
	assert_int_equal(t->chunks[TRACE_CHUNK_SHARED], 1);
	for (uint64_t at = 65536; at < t->bytes;) {
		const struct trace_chunk *c = (const void *)(t->base + at);

		assert_int_equal(c->magic, TRACE_CHUNK_MAGIC);
		if (c->type == TRACE_CHUNK_EVENTS)
			assert_int_equal(c->sequence, own++);
		if (c->sealed && c->type != TRACE_CHUNK_DEFINITIONS) {
			sealed++;
			assert_true(c->checksum == xxh64(c + 1, c->committed));
		}
		at += c->bytes;
	}
	assert_true(own >= 1);
	assert_int_equal(sealed, own); /* all but the last, and the shared one before them */
	under_free(t);
	under_end();
}

static void *short_thread(void *unused)
{
	write_events(3, 64);
	return NULL;
}

static void test_short_threads(void **state)
{
	struct under_trace *t;

	assert_int_equal(under_begin(1 << 30), 0);
	thread_init();
	for (int i = 0; i < 2000; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, short_thread, NULL), 0);
		pthread_join(thread, NULL);
	}
	t = under_read();
	assert_int_equal(t->errors, 0);
	assert_int_equal(under_count(t, TRACE_ALLOC), 6000);
	assert_int_equal(under_count(t, TRACE_THREAD_EXIT), 2000);
	/* one chunk serves some 2,000 threads, depending on the length of their names */
	assert_true(t->bytes < 40 * 65536);
	/* each record belongs to its thread: in order, three after each change of thread */
	for (uint64_t i = 0, own = 0, thread = 0; i < t->count; i++) {
		if (t->events[i].kind == TRACE_SHARED_THREAD)
			own = t->events[i].thread == thread ? own : 0;
		thread = t->events[i].thread;
		assert_true(thread > 0 && thread <= 2000);
		own += t->events[i].kind == TRACE_ALLOC;
		assert_true(own <= 3);
	}
	under_free(t);
	under_end();
}

static void test_budget(void **state)
{
	const struct trace_header *h;
	struct under_trace *t;
	uint64_t small = 0, large = 0;

	assert_int_equal(under_begin(2 << 20), 0);
	write_events(400000, 16);
	write_events(10, 1 << 20);
	t = under_read();
	h = (const void *)t->base;
	assert_true(t->bytes <= 2 << 20);
	assert_true(h->flags & TRACE_FLAG_BUDGET);
	assert_true(h->dropped[TRACE_DROP_BUDGET] > 0);
	for (uint64_t i = 0; i < t->count; i++)
		if (t->events[i].kind == TRACE_ALLOC)
			*(t->events[i].field[1] >= 65536 ? &large : &small) += 1;
	assert_int_equal(large, 10);
	assert_int_equal(small + h->dropped[TRACE_DROP_BUDGET], 400000);
	assert_int_equal(under_count(t, TRACE_NOTICE), 1);
	under_free(t);
	under_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_chunks_follow),
	    cmocka_unit_test(test_short_threads),
	    cmocka_unit_test(test_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
