/* test_note.c - the records that note_*() writes are as docs/trace-format.md says. */
#include "under.h"

#include <errno.h>
#include <string.h>

#include "shim.h"

static struct stack_start nowhere;

static struct note enter(void)
{
	return note_enter(__builtin_return_address(0));
}

static struct under_trace *begin_and_read(void (*work)(void))
{
	struct under_trace *t;

	assert_int_equal(under_begin(1 << 30), 0);
	work();
	t = under_read();
	assert_int_equal(t->errors, 0);
	return t;
}

static const struct under_event *find(const struct under_trace *t, uint32_t kind, unsigned nth)
{
	for (uint64_t i = 0; i < t->count; i++)
		if (t->events[i].kind == kind && !nth--)
			return &t->events[i];
	fail_msg("no event of kind %u", kind);
	return NULL;
}

static void some_blocks(void)
{
	struct note n = enter();

	under_stack = 7;
	note_alloc(n, TRACE_API_MALLOC, (void *)0x7f0000001000, 24, &nowhere);
	note_alloc(n, TRACE_API_CALLOC, (void *)0x10, 1ull << 40, &nowhere);
	under_stack = 9;
	note_free(n, (void *)0x7f0000001000, TRACE_FREE_REALLOC);
	note_unfree(n, (void *)0x7f0000001000);
	note_alloc(n, TRACE_API_REALLOC, (void *)0x7f0000001003, 1, &nowhere);
	note_free(n, (void *)0x7f0000001003, 0);
	note_leave(n);
}

static void test_blocks(void **state)
{
	struct under_trace *t = begin_and_read(some_blocks);
	const struct under_event *e = find(t, TRACE_ALLOC, 0);

	assert_int_equal(e->field[0], 0x7f0000001000);
	assert_int_equal(e->field[1], 24);
	assert_int_equal(e->field[2], 7);
	assert_int_equal(e->flags & 7, TRACE_API_MALLOC);
	e = find(t, TRACE_ALLOC, 1);
	assert_int_equal(e->field[0], 0x10);
	assert_int_equal(e->field[1], 1ull << 40);
	assert_int_equal(e->field[2], 7);
	assert_int_equal(e->flags, 8 | TRACE_API_CALLOC); /* the same stack */
	e = find(t, TRACE_FREE, 0);
	assert_int_equal(e->field[0], 0x7f0000001000);
	assert_int_equal(e->flags, 1);
	assert_int_equal(find(t, TRACE_UNFREE, 0)->field[0], 0x7f0000001000);
	e = find(t, TRACE_ALLOC_WIDE, 0);
	assert_int_equal(e->field[0], 0x7f0000001003);
	assert_int_equal(e->field[1], 1);
	assert_int_equal(e->field[2], 9);
	assert_int_equal(e->field[3], TRACE_API_REALLOC);
	assert_int_equal(find(t, TRACE_FREE_WIDE, 0)->field[0], 0x7f0000001003);
	under_free(t);
	under_end();
}

/* A task is recorded before its first event, also where a chunk ends between the two. */
#define MANY_TASKS 200000u
static void many_tasks(void)
{
	struct note n = enter();

	under_stack = 7;
	for (uint64_t i = 0; i < MANY_TASKS; i++) {
		under_task = i / 3 % 5 ? 0x7f0000000000 + i / 3 * 64 : 0;
		note_alloc(n, TRACE_API_MALLOC, (void *)(0x7f0000001000 + i * 8), 1ull << 40 | i,
		    &nowhere);
	}
	note_task_end(n, 0x7f0000000000);
	under_task = 0;
	note_leave(n);
}

#define CYCLE 7u
#define CYCLES 30000u

/* The n-th block: three stacks of the cycle change their size each time, one of them only in the
 * upper half. */
static uint32_t cycle_stack(uint32_t n)
{
	return n % CYCLE == 3 && n / CYCLE % 5 == 0 ? 1000 + n % 11 : 1 + n % CYCLE;
}

static uint64_t cycle_size(uint32_t n)
{
	switch (n % CYCLE) {
	case 2:
		return 100 + n / CYCLE % 3;
	case 4:
		return n / CYCLE % 2 ? 5 : (1ull << 32) + 5;
	case 5:
		return UINT32_MAX;
	}
	return 8 * (n % CYCLE);
}

static void cycles(void)
{
	struct note n = enter();

	for (uint32_t i = 0; i < CYCLES * CYCLE; i++) {
		void *block = (void *)(0x7f0000000000 + 4096ul * (i * 7919ul % 262144));

		under_stack = cycle_stack(i);
		note_alloc(n, TRACE_API_MALLOC, block, cycle_size(i), &nowhere);
		if (i % 5 == 0)
			note_free(n, block, 0);
	}
	note_leave(n);
}

/* Expected stacks and sizes are not written, in a thread's own chunks, and read back as they
 * were. */
static void test_expected(void **state)
{
	struct under_trace *t = begin_and_read(cycles);
	uint32_t n = 0;

	for (uint64_t i = 0; i < t->count; i++) {
		const struct under_event *e = &t->events[i];

		if (e->kind != TRACE_ALLOC)
			continue;
		assert_int_equal(e->field[1], cycle_size(n));
		assert_int_equal(e->field[2], cycle_stack(n));
		n++;
	}
	assert_int_equal(n, CYCLES * CYCLE);
	assert_true(t->chunks[TRACE_CHUNK_EVENTS] >= 2);
	assert_in_range(t->expected, n / 10 * 8, n);
	under_free(t);
	under_end();
	(void)state;
}

static void test_tasks(void **state)
{
	struct under_trace *t = begin_and_read(many_tasks);
	uint64_t task = 0, at = 0;

	for (uint64_t i = 0; i < t->count; i++) {
		const struct under_event *e = &t->events[i];

		if (e->kind == TRACE_TASK)
			task = e->field[0];
		if (e->kind != TRACE_ALLOC)
			continue;
		assert_int_equal(e->field[1], 1ull << 40 | at);
		assert_int_equal(task, at / 3 % 5 ? 0x7f0000000000 + at / 3 * 64 : 0);
		at++;
	}
	assert_int_equal(at, MANY_TASKS);
	assert_int_equal(find(t, TRACE_TASK_END, 0)->field[0], 0x7f0000000000);
	under_free(t);
	under_end();
}

static void a_failure(void)
{
	struct note n = enter();
	struct note_failure f = {TRACE_API_ALIGNED, ENOMEM, 1ull << 50, 64, 0x1234};

	under_stack = 3;
	note_failed(n, &f, &nowhere);
	f.error = EINVAL; /* the caller's mistake, not a lack of memory */
	note_failed(n, &f, &nowhere);
	note_leave(n);
}

static void test_failed(void **state)
{
	struct under_trace *t = begin_and_read(a_failure);
	const struct under_event *e = find(t, TRACE_FAILED, 0);
	bool rss = false;

	assert_int_equal(under_count(t, TRACE_FAILED), 1);
	assert_int_equal(e->field[0], TRACE_SPACE_HOST);
	assert_int_equal(e->field[1], TRACE_API_ALIGNED);
	assert_int_equal(e->field[2], TRACE_FAIL_ERRNO);
	assert_int_equal(e->field[3], ENOMEM);
	assert_int_equal(e->field[4], 1ull << 50);
	assert_int_equal(e->field[5], 64);
	assert_int_equal(e->field[6], 0x1234);
	assert_int_equal(e->field[7], 3);
	for (uint32_t i = 9; i + 1 < e->fields; i += 2)
		rss |= e->field[i] == TRACE_LEVEL_RSS && e->field[i + 1] > 4096;
	assert_true(rss);
	under_free(t);
	under_end();
}

static void some_mappings(void)
{
	struct note n = enter();

	note_map(n,
	    &(struct note_mapping){.api = TRACE_API_MMAP,
		.address = 0x700000000000,
		.length = 5000,
		.prot = 3,
		.flags = TRACE_MAP_FIXED,
		.backing = TRACE_BACKING_MEMFD,
		.name = 2,
		.offset = 4096},
	    &nowhere);
	note_unmap(n, TRACE_API_MUNMAP, 0x700000001000, 1, 0);
	note_ununmap(n, 0x700000001000, 1);
	note_advise(n, 0x700000000000, 4096, 4);
	note_brk(n, 0x1000, 0x3000, &nowhere);
	n.how = NOTE_INSIDE;
	note_map(n, &(struct note_mapping){.address = 0x1000, .length = 4096}, &nowhere);
	note_alloc(n, TRACE_API_MALLOC, (void *)0x1000, 1, &nowhere); /* not recorded */
	n.how = NOTE_PLAIN;
	note_leave(n);
}

static void test_mappings(void **state)
{
	struct under_trace *t = begin_and_read(some_mappings);
	const struct under_event *e = find(t, TRACE_MAP, 0);

	assert_int_equal(e->field[0], 0x700000000000);
	assert_int_equal(e->field[1], 8192); /* whole pages */
	assert_int_equal(e->field[4], TRACE_MAP_FIXED);
	assert_int_equal(e->field[5], TRACE_BACKING_MEMFD);
	assert_int_equal(e->field[7], 4096);
	assert_int_equal(find(t, TRACE_UNMAP, 0)->field[1], 4096);
	assert_int_equal(find(t, TRACE_UNUNMAP, 0)->field[0], 0x700000001000);
	assert_int_equal(find(t, TRACE_ADVISE, 0)->field[2], 4);
	assert_int_equal(find(t, TRACE_BRK, 0)->field[1], 0x3000);
	assert_int_equal(find(t, TRACE_MAP, 1)->field[4], TRACE_MAP_ALLOCATOR);
	assert_int_equal(under_count(t, TRACE_ALLOC), 0);
	under_free(t);
	under_end();
}

/* A handler's calls while its thread writes a record. */
static void interrupted(void)
{
	struct note n = enter(), inner;

	n.thread->state = THREAD_RECORD;
	for (unsigned i = 0; i < TRACE_SIDE_MAX + 3; i++) {
		inner = enter();
		assert_int_equal(inner.how, NOTE_SIDE);
		note_alloc(
		    inner, TRACE_API_MALLOC, (void *)(uintptr_t)(0x1000 + 16 * i), i, &nowhere);
		note_leave(inner);
		assert_int_equal(n.thread->state, THREAD_RECORD);
	}
	n.thread->state = THREAD_REAL;
	note_alloc(n, TRACE_API_MALLOC, (void *)0x8000, 5, &nowhere);
	note_leave(n);
}

static void test_side(void **state)
{
	struct under_trace *t = begin_and_read(interrupted);
	const struct trace_header *h = (const void *)t->base;

	assert_int_equal(t->side, TRACE_SIDE_MAX);
	assert_int_equal(h->dropped[TRACE_DROP_SIGNAL], 3);
	assert_int_equal(find(t, TRACE_ALLOC, 0)->field[0], 0x8000);
	under_free(t);
	under_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_blocks),
	    cmocka_unit_test(test_expected),
	    cmocka_unit_test(test_tasks),
	    cmocka_unit_test(test_failed),
	    cmocka_unit_test(test_mappings),
	    cmocka_unit_test(test_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
