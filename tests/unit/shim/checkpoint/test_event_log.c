/* test_event_log.c - a release removes its acquisition from the log and nothing else; levels
 * become sparse evenly; events without room are dropped, the oldest first, and counted. */
#include "../under.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/varint.h"
#include "checkpoint/event_log.h"
#include "checkpoint/freed_stats.h"
#include "cuda/cuda_call.h"
#include "thread/thread.h"

#define CUDA0 ((uint64_t)CUDA_DEVICE * 64 + 1)
#define TORCH0 ((uint64_t)CUDA_TORCH * 64 + 1)
/* Ticks between events: enough that no release can be taken back any more, and together fewer than
 * have passed since the machine started. */
#define OLD 100000u

static struct thread self = {.serial = 1, .tid = 11};
static uint64_t now;

static void event_of(
    struct thread *t, enum trace_event_kind kind, unsigned count, const uint64_t *fields)
{
	uint8_t body[512], *p = varint_put(body, 300); /* a dt, which is not kept */

	for (unsigned i = 0; i < count; i++)
		p = varint_put(p, fields[i]);
	now += OLD;
	event_log_add(t->serial, t->tid, kind, now, body, (uint32_t)(p - body));
}

#define EVENT(kind, ...)                                                                           \
	event_of(&self, TRACE_##kind, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t),        \
	    (const uint64_t[]){__VA_ARGS__})

static int begin(void **state)
{
	if (!tick_clock.kind)
		clock_init();
	options.max_trace = 1 << 30;
	event_log_forked();
	now = 1000;
	return 0;
}

static uint64_t left_out;

/* Counts the logged events of a kind; 0: of all. */
static unsigned kept(unsigned kind)
{
	unsigned n = 0;
	uint64_t last = 0;

	assert_true(event_log_begin());
	for (const struct event_log_record *r = event_log_next(NULL); r; r = event_log_next(r)) {
		n += !kind || r->kind == kind;
		assert_true(r->ticks >= last);
		last = r->ticks;
	}
	left_out = event_log_left_out();
	event_log_end();
	return n;
}

static void test_whole(void **state)
{
	const struct event_log_record *r;

	EVENT(SPACE_ALLOC, CUDA0, 3, 0x7f0000000200, 1 << 20, 17, 0, 0, 0, 0, 0);
	EVENT(MARK, TRACE_MARK_POINT, 0, 4, 0, 0, 0);
	assert_true(event_log_begin());
	r = event_log_next(NULL);
	assert_int_equal(r->kind, TRACE_SPACE_ALLOC);
	assert_int_equal(r->thread, 1);
	assert_int_equal(r->tid, 11);
	assert_int_equal(r->ticks, 1000 + OLD);
	assert_int_equal(r->length, 18); /* without its dt */
	assert_int_equal(r->body[0], CUDA0);
	r = event_log_next(r);
	assert_int_equal(r->kind, TRACE_MARK);
	assert_null(event_log_next(r));
	event_log_end();
}

static void test_spaces(void **state)
{
	EVENT(SPACE_ALLOC, CUDA0, 3, 0x1000, 64, 17, 0, 0, 0, 0, 0);
	EVENT(SPACE_ALLOC, TORCH0, 4, 0x1000, 32, 17, 0, 0, 0, 0, 0); /* inside it */
	EVENT(SPACE_ALLOC, CUDA0, 3, 0x2000, 64, 17, 0, 0, 0, 0, 0);
	assert_int_equal(kept(0), 3);
	EVENT(SPACE_FREE, TORCH0, 4, 0x1000, 0, 0, 0);
	assert_int_equal(kept(0), 2);
	EVENT(SPACE_FREE, 0, 5, 0x2000, 0, 0, 0); /* of any space */
	assert_int_equal(kept(0), 1);
	EVENT(SPACE_FREE, CUDA0, 5, 0x3000, 0, 0, 0); /* of an unknown block */
	assert_int_equal(kept(0), 1);
	/* a release that failed */
	EVENT(SPACE_FREE, CUDA0, 5, 0x1000, 0, 0, 0);
	EVENT(SPACE_UNFREE, CUDA0, 0x1000, 0);
	assert_int_equal(kept(TRACE_SPACE_ALLOC), 1);
	assert_int_equal(kept(0), 1);
	/* and one of just now, which may still be taken back */
	now = clock_ticks() - OLD;
	EVENT(SPACE_FREE, CUDA0, 5, 0x1000, 0, 0, 0);
	assert_int_equal(kept(0), 2);
	EVENT(SPACE_UNFREE, CUDA0, 0x1000, 0);
	assert_int_equal(kept(0), 1);
	assert_int_equal(left_out, 0);
}

static void test_handles(void **state)
{
	enum { H = TRACE_SPACE_HANDLE, REFERENCE = TRACE_SPACE_REFERENCE };

	EVENT(SPACE_ALLOC, CUDA0, 3, 77, 1 << 21, 17, 0, 0, H, 0, 0);
	EVENT(SPACE_MAP, 3, 0x100000, 1 << 21, 0, 77, 17);
	EVENT(SPACE_ALLOC, CUDA0, 3, 77, 0, 17, 0, 0, H | REFERENCE, 0, 0);
	EVENT(SPACE_FREE, CUDA0, 5, 77, 0, H, 0);
	EVENT(SPACE_FREE, CUDA0, 5, 77, 0, H, 0);
	/* no references, but its memory is still visible */
	assert_int_equal(kept(0), 5);
	EVENT(SPACE_UNMAP, 6, 0x100000, 1 << 21);
	assert_int_equal(kept(0), 0);
	/* the value names another handle now; one call unmaps two mappings */
	EVENT(SPACE_ALLOC, CUDA0, 3, 77, 1 << 21, 17, 0, 0, H, 0, 0);
	EVENT(SPACE_MAP, 3, 0x100000, 1 << 20, 0, 77, 17);
	EVENT(SPACE_MAP, 3, 0x200000, 1 << 20, 1 << 20, 77, 17);
	EVENT(SPACE_UNMAP, 6, 0x100000, 0x200000);
	assert_int_equal(kept(0), 1);
	EVENT(SPACE_FREE, CUDA0, 5, 77, 0, H, 0);
	assert_int_equal(kept(0), 0);
}

static void test_maps(void **state)
{
	EVENT(MAP, 0x10000, 0x4000, 3, TRACE_API_MMAP, 0, 0, 0, 0, 17);
	EVENT(MAP, 0x20000, 0x4000, 3, TRACE_API_MMAP, 0, 0, 0, 0, 17);
	EVENT(UNMAP, 0x20000, 0x4000, TRACE_API_MUNMAP, 0);
	assert_int_equal(kept(0), 1);
	/* released in part: both records stay */
	EVENT(UNMAP, 0x11000, 0x1000, TRACE_API_MUNMAP, 0);
	assert_int_equal(kept(0), 2);
	/* another mapping comes there; then one release covers all */
	EVENT(MAP, 0x11000, 0x1000, 3, TRACE_API_MMAP, 0, 0, 0, 0, 17);
	EVENT(UNMAP, 0x10000, 0x4000, TRACE_API_MUNMAP, 0);
	assert_int_equal(kept(TRACE_UNMAP), 1);
	assert_int_equal(kept(0), 2);
	/* a mapping elsewhere is dropped as usual */
	EVENT(MAP, 0x50000, 0x4000, 3, TRACE_API_MMAP, 0, 0, 0, 0, 17);
	EVENT(UNMAP, 0x50000, 0x4000, TRACE_API_MUNMAP, 0);
	assert_int_equal(kept(0), 2);
}

/* A moved mapping has its attributes from the first record, so the chain stays. */
static void test_mremap(void **state)
{
	EVENT(MAP, 0x10000, 0x4000, 3, TRACE_API_MMAP, TRACE_MAP_SHARED, 0, 0, 0, 17);
	for (uint64_t i = 1; i < 5; i++) {
		EVENT(UNMAP, 0x10000 * i, 0x4000, TRACE_API_MREMAP, TRACE_UNMAP_REMAP);
		EVENT(MAP, 0x10000 * (i + 1), 0x4000, 0, TRACE_API_MREMAP, TRACE_MAP_REMAP, 0, 0, 0,
		    17);
	}
	assert_int_equal(kept(0), 9);
	EVENT(UNMAP, 0x50000, 0x4000, TRACE_API_MUNMAP, 0);
	assert_int_equal(kept(0), 0);
}

/* Pairs without end take no room; a block that outlives them stays. */
static void test_churn(void **state)
{
	options.max_trace = 4 << 20;
	EVENT(SPACE_ALLOC, TORCH0, 4, 0x999000, 32, 17, 0, 0, 0, 0, 0);
	for (uint64_t i = 0; i < 30000; i++) {
		EVENT(SPACE_ALLOC, TORCH0, 4, 0x1000 + i % 100 * 512, 32, 17, 0, 0, 0, 0, 0);
		EVENT(SPACE_FREE, TORCH0, 4, 0x1000 + i % 100 * 512, 0, 0, 0);
	}
	assert_int_equal(kept(0), 1);
	assert_int_equal(left_out, 0);
}

/* Live blocks without room are dropped, the oldest first, and counted. */
static void test_bound(void **state)
{
	enum { MANY = 200000 };
	const struct event_log_record *r;
	unsigned n;

	for (uint64_t i = 0; i < MANY; i++)
		EVENT(SPACE_ALLOC, TORCH0, 4, 0x1000 + i * 512, 32, 17, 0, 0, 0, 0, 0);
	n = kept(0);
	assert_true(n > 1000 && n < MANY);
	assert_int_equal(n + left_out, MANY);
	assert_true(event_log_begin());
	r = event_log_next(NULL);
	assert_int_equal(r->ticks, 1000 + (uint64_t)OLD * (MANY - n + 1));
	event_log_end();
	assert_true(event_log_bytes() <= 4 << 20);
}

/* A history of levels keeps its beginning and its end, and no gap is much longer than others. */
static void test_levels(void **state)
{
	enum { MANY = 200000 };
	uint64_t first = 0, last = 0, longest = 0, n = 0;

	for (uint64_t i = 0; i < MANY; i++)
		EVENT(LEVEL, 0, 3, TRACE_LEVEL_RSS, i << 20, TRACE_LEVEL_VSIZE, i << 24,
		    TRACE_LEVEL_RSS_ANON, i << 19);
	assert_true(event_log_begin());
	for (const struct event_log_record *r = event_log_next(NULL); r; r = event_log_next(r)) {
		if (!first)
			first = r->ticks;
		if (last && r->ticks - last > longest)
			longest = r->ticks - last;
		last = r->ticks;
		n++;
	}
	event_log_end();
	assert_true(n > 1000 && n < MANY / 2);
	assert_int_equal(first, 1000 + OLD);
	assert_true(now - last < (now - first) / 50);
	assert_true(longest < (now - first) / n * 4);
}

/* Marks and tasks are dropped by age, except the current task of each thread. */
static void test_tasks(void **state)
{
	struct thread other = {.serial = 2, .tid = 12};
	bool found = false;

	event_of(&other, TRACE_TASK, 1, (uint64_t[]){0x7700});
	EVENT(MARK, TRACE_MARK_BEGIN, 0, 4, TRACE_MARK_PHASE, 0, 0);
	for (uint64_t i = 0; i < 300000; i++) {
		EVENT(TASK, 0x8000 + i);
		EVENT(TASK_END, 0x8000 + i);
	}
	assert_int_equal(kept(TRACE_MARK), 1);
	assert_true(kept(0) < 100000);
	assert_true(event_log_begin());
	for (const struct event_log_record *r = event_log_next(NULL); r; r = event_log_next(r))
		found |= r->kind == TRACE_TASK && r->thread == 2;
	event_log_end();
	assert_true(found);
	assert_int_equal(left_out, 0);
}

static void *pairs(void *arg)
{
	struct thread t = {.serial = (uint32_t)(uintptr_t)arg, .tid = 1};
	uint8_t body[64], *p;

	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t address = (uint64_t)(uintptr_t)arg << 32 | i % 50 << 9;

		p = varint_put(
		    varint_put(varint_put(varint_put(varint_put(body, 0), TORCH0), 4), address),
		    32);
		memset(p, 0, 6);
		event_log_add(
		    t.serial, t.tid, TRACE_SPACE_ALLOC, 5 + i * 2, body, (uint32_t)(p + 6 - body));
		p = varint_put(varint_put(varint_put(varint_put(body, 0), TORCH0), 4), address);
		memset(p, 0, 3);
		if (i < 99900)
			event_log_add(t.serial, t.tid, TRACE_SPACE_FREE, 6 + i * 2, body,
			    (uint32_t)(p + 3 - body));
	}
	return NULL;
}

/* Several threads add while another freezes the log: exactly the live blocks of each remain. */
static void test_threads(void **state)
{
	pthread_t threads[4];
	unsigned n = 0;

	options.max_trace = 16 << 20;
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, pairs, (void *)(i + 1)), 0);
	for (int i = 0; i < 50; i++)
		if (event_log_begin())
			event_log_end();
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(event_log_begin());
	for (const struct event_log_record *r = event_log_next(NULL); r; r = event_log_next(r))
		n += r->kind == TRACE_SPACE_ALLOC;
	assert_int_equal(event_log_left_out(), 0);
	event_log_end();
	assert_int_equal(n, 4 * 50); /* the last hundred of each, which are 50 places twice */
}

/* Blocks that leave the log are counted in the freed statistics, once. */
static void test_summed(void **state)
{
	const struct freed_stack *g;
	uint32_t count;

	freed_stats_forked();
	for (uint64_t i = 1; i <= 5; i++) {
		EVENT(SPACE_ALLOC, TORCH0, 4, 0x1000, i << 20, 17, 0, 0, 0, 0, 0);
		EVENT(SPACE_FREE, TORCH0, 4, 0x1000, 0, 0);
	}
	EVENT(SPACE_ALLOC, TORCH0, 4, 0x1000, 9 << 20, 17, 0, 0, 0, 0, 0);
	assert_int_equal(kept(0), 1);
	assert_int_equal(kept(0), 1);
	freed_stats_period_begin();
	freed_stats_period_commit(0, UINT64_MAX);
	g = freed_stats_period(0, &count);
	assert_int_equal(count, 1);
	assert_int_equal(g->key, TORCH0 << 32 | 17);
	assert_int_equal(g->blocks, 5);
	assert_int_equal(g->bytes, 15 << 20);
	assert_int_equal(g->largest, 5 << 20);
	assert_int_equal(g->longest_lifetime, OLD);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
	    TEST(test_whole),
	    TEST(test_spaces),
	    TEST(test_handles),
	    TEST(test_maps),
	    TEST(test_mremap),
	    TEST(test_churn),
	    TEST(test_bound),
	    TEST(test_levels),
	    TEST(test_tasks),
	    TEST(test_summed),
	    TEST(test_threads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
