/* test_guard.c - how a call within another call is classified. */
#include "under.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

#include "base/shim_state.h"
#include "guard.h"
#include "shim.h"

static __attribute__((noinline)) struct note enter(const void *caller)
{
	return note_enter(caller);
}

static void test_nested(void **state)
{
	struct note outer, inner;

	assert_int_equal(under_begin(1 << 30), 0);
	shim.owner_low = 0x1000;
	shim.owner_high = 0x2000;
	outer = note_enter((void *)0x5000);
	assert_int_equal(outer.how, NOTE_PLAIN);
	assert_int_equal(outer.thread->state, THREAD_REAL);
	inner = enter((void *)0x1800); /* the allocator's own */
	assert_int_equal(inner.how, NOTE_INSIDE);
	note_leave(inner);
	inner = enter((void *)0x5000); /* a handler's */
	assert_int_equal(inner.how, NOTE_PLAIN);
	note_leave(inner);
	assert_int_equal(outer.thread->state, THREAD_REAL);
	/* the allocator's calls for a handler that interrupted a record */
	outer.thread->state = THREAD_RECORD;
	inner = enter((void *)0x5000);
	assert_int_equal(inner.how, NOTE_SIDE);
	note_leave(inner);
	inner = enter((void *)0x1800);
	assert_int_equal(inner.how, NOTE_SIDE_INSIDE);
	note_alloc(inner, TRACE_API_MALLOC, &inner, 100, NULL);
	note_free(inner, &inner, 0);
	assert_int_equal(outer.thread->chunk->side_count, 0);
	note_leave(inner);
	assert_int_equal(outer.thread->state, THREAD_RECORD);
	outer.thread->state = THREAD_REAL;
	shim.owner_is_libc = true;
	inner = enter((void *)0x1800);
	assert_int_equal(inner.how, NOTE_PLAIN);
	note_leave(inner);
	shim.owner_is_libc = false;
	note_leave(outer);
	assert_int_equal(outer.thread->state, THREAD_IDLE);
	under_end();
}

static __attribute__((noinline)) void left_by_longjmp(jmp_buf out)
{
	volatile char deep[512];
	struct note n = note_enter(NULL);

	deep[0] = (char)(uintptr_t)n.thread;
	assert_int_equal(deep[0], (char)(uintptr_t)n.thread);
	n.thread->state = THREAD_RECORD;
	longjmp(out, 1);
}

static void test_abandoned(void **state)
{
	struct note n;
	jmp_buf out;

	assert_int_equal(under_begin(1 << 30), 0);
	if (!setjmp(out))
		left_by_longjmp(out);
	assert_int_equal(thread_self->state, THREAD_RECORD);
	n = note_enter(NULL);
	assert_int_equal(n.how, NOTE_PLAIN);
	assert_int_equal(n.before, THREAD_IDLE);
	note_leave(n);
	assert_int_equal(thread_self->state, THREAD_IDLE);
	under_end();
}

static struct note in_handler;

static void handler(int number)
{
	in_handler = note_enter(NULL);
	note_leave(in_handler);
}

/* On a signal stack above the interrupted frame, that frame still exists. */
static void test_signal_stack(void **state)
{
	static char low[65536];
	stack_t alternate = {.ss_sp = low, .ss_size = sizeof(low)}, before;
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	struct note n;

	assert_int_equal(under_begin(1 << 30), 0);
	sigaltstack(&alternate, &before);
	sigaction(SIGUSR1, &action, NULL);
	n = note_enter(NULL);
	n.thread->state = THREAD_RECORD;
	n.thread->frame = 1; /* lower than any frame */
	raise(SIGUSR1);
	assert_int_equal(in_handler.how, NOTE_SIDE);
	assert_int_equal(n.thread->state, THREAD_RECORD);
	n.thread->state = THREAD_REAL;
	note_leave(n);
	sigaltstack(&before, NULL);
	under_end();
}

static void test_dormant(void **state)
{
	int mode = shim.mode;

	thread_self = NULL;
	shim.mode = SHIM_DORMANT;
	assert_int_equal(note_enter(NULL).how, NOTE_NOT);
	shim.mode = mode;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_nested),
	    cmocka_unit_test(test_abandoned),
	    cmocka_unit_test(test_signal_stack),
	    cmocka_unit_test(test_dormant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
