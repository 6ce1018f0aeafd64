/*
 * guard.c - the rare cases of guard.h: a thread without a state, and calls within calls.
 */
#include "guard.h"

#include <signal.h>
#include <sys/syscall.h>

#include "base/shim_state.h"
#include "base/sys.h"

static bool on_signal_stack(void)
{
	stack_t now = {0};

	if (shim.sandboxed)
		return true; /* the answer that keeps every state: asking takes a system call */
	return sys_call(SYS_sigaltstack, 0, (long)&now, 0, 0, 0, 0) != 0 ||
	       (now.ss_flags & SS_ONSTACK);
}

/* Did a longjmp leave the call that set the state? Then this call is above that one's frame. */
static bool abandoned(const struct thread *t, uintptr_t frame)
{
	return frame > t->frame && !on_signal_stack();
}

/* libc's allocator calls itself only by internal names, so a call from there comes from a handler.
 * Other allocators use the public names, also by a jump, so that the caller is the shim. */
static bool from_allocator(const void *caller)
{
	uintptr_t at = (uintptr_t)caller;

	return at - shim.own_low < shim.own_high - shim.own_low ||
	       (!shim.owner_is_libc && at - shim.owner_low < shim.owner_high - shim.owner_low);
}

struct note guard_enter_slow(const void *caller, uintptr_t frame)
{
	struct thread *t = thread_self;

	if (!t) {
		t = shim.mode == SHIM_DORMANT ? NULL : thread_make();
		if (!t)
			return (struct note){NULL, NOTE_NOT, 0};
	}
	if (t->no_notes)
		return (struct note){t, NOTE_NOT, t->state};
	if (t->state != THREAD_IDLE && abandoned(t, frame)) {
		t->state = THREAD_IDLE;
		t->side_open = 0;
	}
	switch (t->state) {
	case THREAD_IDLE:
		t->state = THREAD_REAL;
		t->frame = frame;
		return (struct note){t, NOTE_PLAIN, THREAD_IDLE};
	case THREAD_REAL:
		return (struct note){
		    t, from_allocator(caller) ? NOTE_INSIDE : NOTE_PLAIN, THREAD_REAL};
	default:
		return (struct note){
		    t, from_allocator(caller) ? NOTE_SIDE_INSIDE : NOTE_SIDE, THREAD_RECORD};
	}
}
