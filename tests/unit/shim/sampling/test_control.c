/* test_control.c - the next record obeys a command in the trace's header, answers it once and
 * records the change; a pause leaves out new blocks but no release. */
#include "../under.h"

#include <string.h>

#include "base/shim_state.h"
#include "sampling/control.h"
#include "sampling/sampler.h"
#include "shim.h"

static struct stack_start nowhere;
static struct note n;

static void begin(bool sampled)
{
	memset(&sampler, 0, sizeof(sampler));
	memset(&sampler_self, 0, sizeof(sampler_self));
	shim.owner_is_libc = true;
	assert_int_equal(under_begin(1 << 30), 0);
	control_forked();
	sampler_set(sampled, 4096, 1 << 20);
	n = note_enter(__builtin_return_address(0));
}

static void ask(unsigned command, uint64_t every)
{
	struct trace_control *c = &trace_file_header->control;

	c->command = command;
	c->every = every;
	c->exact_from = 0;
	__atomic_store_n(&c->asked, c->asked + 1, __ATOMIC_RELEASE);
}

static void alloc(uint64_t address, uint64_t size)
{
	if (!sampler_passes(size))
		note_alloc(n, TRACE_API_MALLOC, (void *)address, size, &nowhere);
}

static bool answered(void)
{
	return trace_file_header->control.answered == trace_file_header->control.asked;
}

/* Continue until the thread looks for commands, after at most 1 MiB. */
static void go_on(void)
{
	for (uint64_t i = 0; i < 1200 && !answered(); i++)
		alloc(0x100000 + 1024 * i, 1000);
	assert_true(answered());
}

static void test_sampled(void **state)
{
	struct trace_control *c;
	struct under_trace *t;

	begin(true);
	c = &trace_file_header->control;
	alloc(0x7f0000000010, 2 << 20);
	ask(TRACE_CONTROL_PAUSE, 0);
	go_on();
	assert_int_equal(c->paused, 1);
	assert_int_equal(c->mode, TRACE_MODE_SAMPLED);
	alloc(0x7f0000400010, 3 << 20);
	note_free(n, (void *)0x7f0000000010, 0); /* recorded before */
	note_free(n, (void *)0x7f0000400010, 0);
	ask(TRACE_CONTROL_RESUME, 0);
	go_on();
	assert_int_equal(c->paused, 0);
	assert_int_equal(c->every_now, 4096);
	alloc(0x7f0000800010, 4 << 20);
	ask(TRACE_CONTROL_SAMPLED, 8192);
	go_on();
	assert_int_equal(c->every_now, 8192);
	assert_int_equal(c->exact_from_now, 1 << 20);
	ask(TRACE_CONTROL_FULL, 0);
	go_on();
	assert_int_equal(c->mode, TRACE_MODE_FULL);
	note_leave(n);
	t = under_read();
	assert_int_equal(t->errors, 0);
	assert_int_equal(
	    under_count(t, TRACE_NOTICE), 5); /* pause, resume and its mode, two modes */
	for (uint64_t i = 0; i < t->count; i++)
		if (t->events[i].kind == TRACE_ALLOC)
			assert_true(t->events[i].field[1] != 3 << 20);
	assert_int_equal(under_count(t, TRACE_FREE), 1);
	under_free(t);
	under_end();
}

static void test_full(void **state)
{
	uint64_t before;
	struct under_trace *t;

	begin(false);
	alloc(0x1000, 64);
	ask(TRACE_CONTROL_PAUSE, 0);
	/* in mode full the thread that reads the levels obeys */
	assert_true(control_follow());
	alloc(0x2000, 64);
	alloc(0x4000, 64); /* a thread's first block is always recorded */
	note_free(n, (void *)0x1000, 0);
	note_free(n, (void *)0x2000, 0);
	ask(TRACE_CONTROL_STATUS, 0);
	go_on();
	assert_int_equal(trace_file_header->control.mode, TRACE_MODE_FULL);
	assert_int_equal(trace_file_header->control.paused, 1);
	ask(TRACE_CONTROL_RESUME, 0);
	go_on();
	note_leave(n);
	t = under_read();
	before = under_count(t, TRACE_ALLOC);
	assert_in_range(before, 2, 4);
	assert_int_equal(under_count(t, TRACE_FREE), 2);
	under_free(t);
	under_end();
}

static void test_forked(void **state)
{
	begin(true);
	ask(TRACE_CONTROL_PAUSE, 0);
	assert_true(control_asked());
	assert_true(control_follow());
	assert_false(control_asked() || control_follow());
	control_forked();
	trace_file_header->control.asked = 0;
	assert_false(control_asked());
	note_leave(n);
	under_end();
}

/* The mean alone, for good; --max-rate doubles both on top of it. */
static void test_thinned(void **state)
{
	unsigned shift = 1;
	uint64_t exact_from;

	begin(true);
	ask(TRACE_CONTROL_RESUME, 0); /* a command outlives a test */
	control_follow();
	ask(TRACE_CONTROL_SAMPLED, 4096);
	control_follow();
	assert_true(control_coarsen(2));
	assert_int_equal(sampler.mean, 4 * 4096);
	assert_int_equal(sampler.exact_from, 1 << 20);
	assert_true(control_scale(&shift));
	assert_int_equal(sampler.mean, 8 * 4096);
	assert_int_equal(sampler.exact_from, 2 << 20);
	assert_int_equal(control_mean(&exact_from), 8 * 4096);
	assert_int_equal(exact_from, 2 << 20);
	ask(TRACE_CONTROL_STATUS, 0);
	control_follow();
	assert_int_equal(trace_file_header->control.every_now, 8 * 4096);
	shift = 32;
	assert_true(control_scale(&shift));
	assert_true(sampler.mean <= 1ull << 40 && sampler.exact_from <= 1ull << 40);
	/* the result does not tell that no block is chosen now */
	shift = 0;
	assert_true(control_scale(&shift));
	ask(TRACE_CONTROL_PAUSE, 0);
	control_follow();
	assert_true(sampler.paused);
	assert_int_equal(control_mean(&exact_from), 4 * 4096);
	ask(TRACE_CONTROL_RESUME, 0);
	control_follow();
	assert_int_equal(sampler.mean, 4 * 4096);
	note_leave(n);
	under_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sampled),
	    cmocka_unit_test(test_full),
	    cmocka_unit_test(test_forked),
	    cmocka_unit_test(test_thinned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
