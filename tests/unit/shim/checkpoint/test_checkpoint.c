/* test_checkpoint.c - a checkpoint replaces chunks: every live block is read once, as it was
 * acquired, and no released one; the file stays within its budget; a checkpoint that cannot be
 * written changes nothing. */
#include "../under.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/shim_state.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/live_blocks.h"
#include "sampling/sampler.h"
#include "shim.h"
#include "thread/thread.h"
#include "trace/trace_file.h"

static struct stack_start nowhere;

static void begin(uint64_t max_trace, uint64_t mean, uint64_t exact_from)
{
	memset(&sampler, 0, sizeof(sampler));
	memset(&sampler_self, 0, sizeof(sampler_self));
	shim.owner_is_libc = true;
	sampler_set(true, mean, exact_from);
	assert_int_equal(under_begin(max_trace), 0);
	checkpoint_forked(trace_file_header->start_ticks);
}

static uint64_t on_disk(void)
{
	struct stat st;

	assert_int_equal(stat(under_path(), &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void acquire(uint64_t address, uint64_t size, uint32_t stack)
{
	struct note n = note_enter(__builtin_return_address(0));

	under_stack = stack;
	note_alloc(n, TRACE_API_MALLOC, (void *)address, size, &nowhere);
	note_leave(n);
}

static void release(uint64_t address)
{
	struct note n = note_enter(__builtin_return_address(0));

	note_free(n, (void *)address, 0);
	note_leave(n);
}

struct live {
	uint64_t address, size, stack, ticks, mean;
};

/* The blocks that live at the end according to the trace, each address once. */
static uint64_t living(const struct under_trace *t, struct live *out, uint64_t room)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < t->count; i++) {
		const struct under_event *e = &t->events[i];
		bool wide = e->kind == TRACE_ALLOC_WIDE, sampled = e->kind == TRACE_SAMPLED_ALLOC;
		uint64_t at = 0;

		if (e->kind != TRACE_ALLOC && e->kind != TRACE_FREE && e->kind != TRACE_FREE_WIDE &&
		    !wide && !sampled)
			continue;
		while (at < n && out[at].address != e->field[0])
			at++;
		if (e->kind == TRACE_FREE || e->kind == TRACE_FREE_WIDE) {
			if (at < n)
				out[at] = out[--n];
			continue;
		}
		assert_true(at == n); /* nothing is read twice */
		assert_true(n < room);
		out[n++] = (struct live){e->field[0], e->field[1], e->field[2 + sampled], e->ticks,
		    sampled ? e->field[2] : 0};
	}
	return n;
}

/* Sorts the checkpoint first, the rest by time; events come in the order of chunks. */
static int by_time(const void *a, const void *b)
{
	const struct under_event *x = a, *y = b;

	if (x->checkpoint != y->checkpoint)
		return x->checkpoint ? -1 : 1;
	return x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

static struct under_trace *read_sorted(void)
{
	struct under_trace *t = under_read();

	assert_int_equal(t->errors, 0);
	assert_int_equal(t->parts, t->checkpoint_parts);
	for (uint64_t i = 1; i < t->count; i++) /* a checkpoint's events are in order */
		if (t->events[i].checkpoint && t->events[i - 1].checkpoint)
			assert_true(t->events[i].ticks >= t->events[i - 1].ticks);
	qsort(t->events, t->count, sizeof(*t->events), by_time);
	return t;
}

#define LEAKED 500u
#define CHURN 200u

/* A leak among short-lived blocks, long enough for many checkpoints. */
static void leak_and_churn(unsigned rounds, uint64_t ticks[LEAKED])
{
	for (unsigned i = 0; i < rounds; i++) {
		unsigned each = rounds / LEAKED;

		acquire(0x100000 + 64ul * (i % CHURN), 1000 + i % 7, 5 + i % 9);
		if (i >= CHURN - 1)
			release(0x100000 + 64ul * ((i + 1) % CHURN));
		if (i % each == 0 && i / each < LEAKED) {
			acquire(0x900000 + 64ul * (i / each) + (i / each) % 3, 5000 + i / each,
			    900 + i / each);
			ticks[i / each] = clock_ticks();
		}
	}
}

static void test_round_trip(void **state)
{
	static uint64_t ticks[LEAKED];
	static struct live live[LEAKED + CHURN];
	uint64_t n, leaked = 0, last = 0, acquired = 0, released = 0;
	struct under_trace *t;
	unsigned periods = 0;

	begin(4 << 20, 1 << 20, 1);
	leak_and_churn(4000000, ticks);
	assert_true(on_disk() <= 4 << 20);
	t = read_sorted();
	assert_true(t->checkpoint >= 10);
	n = living(t, live, LEAKED + CHURN);
	assert_int_equal(n, LEAKED + CHURN - 1);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t which = live[i].size - 5000;

		if (live[i].size < 5000)
			continue;
		leaked++;
		assert_true(which < LEAKED);
		assert_int_equal(live[i].address, 0x900000 + 64 * which + which % 3);
		assert_int_equal(live[i].stack, 900 + which);
		assert_true(live[i].ticks <= ticks[which]);
		assert_true(!which || live[i].ticks > ticks[which - 1]);
	}
	assert_int_equal(leaked, LEAKED);
	for (uint64_t i = 0; i < t->count; i++) {
		const struct under_event *e = &t->events[i];

		if (e->kind != TRACE_CHECKPOINT)
			continue;
		periods++;
		assert_true(e->fields >= 8);
		assert_true(e->field[0] >= last && e->ticks > e->field[0]); /* one after another */
		last = e->ticks;
		acquired += e->field[2];
		released += e->field[4];
		assert_true(
		    e->field[6] >= (CHURN - 1) * 1000 && e->field[6] < (LEAKED + CHURN) * 6000);
		assert_int_equal(e->field[7], 0);
	}
	assert_int_equal(last, t->checkpoint_ticks);
	assert_true(periods <= TRACE_CHECKPOINT_PERIODS && periods >= 5);
	/* the other events follow the checkpoint: none is counted twice, none is missing */
	for (uint64_t i = 0; i < t->count; i++) {
		acquired += !t->events[i].checkpoint && (t->events[i].kind == TRACE_ALLOC ||
							    t->events[i].kind == TRACE_ALLOC_WIDE);
		released += !t->events[i].checkpoint && (t->events[i].kind == TRACE_FREE ||
							    t->events[i].kind == TRACE_FREE_WIDE);
	}
	assert_int_equal(acquired, 4000000 + LEAKED);
	/* the event that found no room was counted before, and written after, each checkpoint */
	assert_in_range(released, 4000000 - CHURN + 1, 4000000 - CHURN + 1 + t->checkpoint);
	assert_false(shim.budget);
	for (int i = 0; i < TRACE_DROP_REASONS; i++)
		assert_int_equal(trace_file_header->dropped[i], 0);
	under_free(t);
	under_end();
}

/* Sampled blocks keep their weight. */
static void test_weights(void **state)
{
	static struct live live[100000];
	struct under_trace *t;
	uint64_t n;

	begin(4 << 20, 50000, 1 << 20);
	for (unsigned i = 0; i < 10000000; i++) {
		acquire(0x100000 + 64ul * (i % 3000), 100, 5);
		release(0x100000 + 64ul * (i % 3000));
		if (i % 1000 == 0)
			acquire(0x10000000 + 64ul * i, 100, 6);
		if (live_blocks_totals().acquired == 0 && i > 100000 && i % 100000 == 0)
			break;
	}
	t = read_sorted();
	n = living(t, live, 100000);
	for (uint64_t i = 0; i < n; i++)
		assert_true(
		    live[i].stack == 6 && live[i].size == 100 && (live[i].mean == 50000 || i == 0));
	under_free(t);
	under_end();
}

static void fill(unsigned from, unsigned count)
{
	for (unsigned i = from; i < from + count; i++)
		acquire(0x1000000 + 64ul * i, 1000, i % 50);
}

/* A checkpoint that is not worth its room changes nothing; from then on only large blocks are
 * recorded. */
static void test_not_worth(void **state)
{
	struct under_trace *t;
	uint64_t n, small = 0;

	begin(2 << 20, 1 << 20, 1);
	fill(0, 300000); /* all of them live */
	assert_true(shim.budget);
	assert_true(trace_file_header->flags & TRACE_FLAG_BUDGET);
	acquire(0x80, 1 << 20, 3);
	assert_true(on_disk() <= 2 << 20);
	t = read_sorted();
	n = 0;
	for (uint64_t i = 0; i < t->count; i++) {
		n += t->events[i].kind == TRACE_ALLOC;
		small += t->events[i].kind == TRACE_ALLOC && t->events[i].field[1] == 1000;
	}
	assert_int_equal(n, small + 1);
	assert_int_equal(small + trace_file_header->dropped[TRACE_DROP_BUDGET], 300000);
	under_free(t);
	under_end();
	shim.budget = false;
	/* empty the table for the next test */
	for (unsigned i = 0; i < 300000; i++)
		live_blocks_take((void *)(0x1000000 + 64ul * i), NULL);
	live_blocks_take((void *)0x80, NULL);
}

/* The sample has no room: some blocks are dropped, the others stand for more, and recording goes
 * on; a dropped block is released as if it had never been recorded. */
static void test_resampled(void **state)
{
	static struct live live[100000];
	const unsigned each = 1000000, size = 100;
	double stands = 0, variance = 0, early = 0;
	struct under_trace *t;
	uint64_t n, frees = 0, last = 0;

	begin(2 << 20, 500, 1 << 20);
	for (unsigned i = 0; i < each; i++)
		acquire(0x10000000 + 64ul * i, size, 5);
	assert_false(shim.budget);
	assert_true(on_disk() <= 2 << 20);
	t = read_sorted();
	n = living(t, live, 100000);
	for (uint64_t i = 0; i < n; i++) {
		double p = live[i].mean ? -expm1(-(double)size / (double)live[i].mean) : 1;

		stands += 1 / p;
		variance += (1 - p) / (p * p);
		if (live[i].address < 0x10000000 + 32ul * each)
			early += 1 / p;
		last = live[i].mean > last ? live[i].mean : last;
	}
	assert_true(fabs(stands - each) < 4.5 * sqrt(variance));
	assert_true(sqrt(variance) < each / 50);
	assert_true(fabs(early - each / 2) < each / 20);
	assert_true(last >= 4000 && last <= sampler.mean);
	n = 0;
	for (uint64_t i = 0; i < t->count; i++) {
		const struct under_event *e = &t->events[i];

		if (e->kind != TRACE_NOTICE || e->field[0] != TRACE_NOTICE_THINNED)
			continue;
		assert_true(e->field[1] > 1000 && e->field[2] > 500);
		assert_int_equal(e->field[3], 1 << 20);
		n = e->field[2] > n ? e->field[2] : n;
	}
	assert_int_equal(n, sampler.mean);
	for (int i = 0; i < TRACE_DROP_REASONS; i++)
		assert_int_equal(trace_file_header->dropped[i], 0);
	under_free(t);
	for (unsigned i = 0; i < each; i++)
		release(0x10000000 + 64ul * i);
	t = read_sorted();
	assert_int_equal(living(t, live, 100000), 0);
	for (uint64_t i = 0; i < t->count; i++)
		frees += t->events[i].kind == TRACE_FREE;
	assert_true(frees < each / 10);
	under_free(t);
	under_end();
}

/* While the file cannot grow a checkpoint fails, and the old chunks stay. */
static void test_no_space(void **state)
{
	static uint64_t ticks[LEAKED];
	static struct live live[LEAKED + CHURN];
	struct rlimit64 was, tight;
	struct under_trace *t;
	struct checkpoint_caller caller;
	uint32_t number;

	begin(4 << 20, 1 << 20, 1);
	leak_and_churn(500000, ticks);
	caller = (struct checkpoint_caller){thread_self->serial, thread_self->tid, thread_settle};
	t = read_sorted();
	number = t->checkpoint;
	under_free(t);
	assert_int_equal(getrlimit64(RLIMIT_FSIZE, &was), 0);
	tight = was;
	tight.rlim_cur = 65536;
	assert_int_equal(setrlimit64(RLIMIT_FSIZE, &tight), 0);
	assert_int_not_equal(checkpoint_make(&caller), CHECKPOINT_MADE);
	assert_int_equal(setrlimit64(RLIMIT_FSIZE, &was), 0);
	t = read_sorted();
	assert_int_equal(t->checkpoint, number);
	assert_int_equal(living(t, live, LEAKED + CHURN), LEAKED + CHURN - 1);
	under_free(t);
	/* later there is room again */
	assert_int_equal(checkpoint_make(&caller), CHECKPOINT_MADE);
	t = read_sorted();
	assert_true(t->checkpoint > number);
	assert_int_equal(living(t, live, LEAKED + CHURN), LEAKED + CHURN - 1);
	under_free(t);
	under_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_weights),
	    cmocka_unit_test(test_no_space),
	    cmocka_unit_test(test_resampled),
	    cmocka_unit_test(test_not_worth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
