/*
 * guard.h - classifies an arriving call: the program's own, one that the real allocator makes
 * inside another, or one of a signal handler that interrupted the shim. The thread's state decides;
 * it is set around each real call and each record.
 */
#ifndef SHIM_GUARD_H
#define SHIM_GUARD_H

#include <stdint.h>

#include "thread/thread.h"

enum note_how {
	NOTE_NOT, /* pass through */
	NOTE_PLAIN, /* record as usual */
	NOTE_SIDE, /* a handler inside a record: into the side area */
	NOTE_INSIDE, /* the allocator's own call: only its mappings are recorded */
	NOTE_SIDE_INSIDE, /* both: only its mappings count, as lost */
};

struct note {
	struct thread *thread;
	uint8_t how;
	uint8_t before; /* the state to restore */
};

/* The rare cases. `caller` is the wrapper's return address, `frame` its frame address. */
struct note guard_enter_slow(const void *caller, uintptr_t frame);

/* Nearly every call is the program's own, of a thread that does nothing else. NULL: perhaps not;
 * use note_enter(). */
static inline __attribute__((always_inline)) struct thread *note_enter_idle(void)
{
	struct thread *t = thread_self;

	if (__builtin_expect(!t || t->state != THREAD_IDLE, 0))
		return NULL;
	t->state = THREAD_REAL;
	t->frame = (uintptr_t)__builtin_frame_address(0);
	return t;
}

static inline struct note note_of_idle(struct thread *t)
{
	return (struct note){t, NOTE_PLAIN, THREAD_IDLE};
}

static inline __attribute__((always_inline)) struct note note_enter(const void *caller)
{
	struct thread *t = note_enter_idle();

	return __builtin_expect(t != NULL, 1)
		   ? note_of_idle(t)
		   : guard_enter_slow(caller, (uintptr_t)__builtin_frame_address(0));
}

static inline __attribute__((always_inline)) void note_leave(struct note n)
{
	if (__builtin_expect(n.how != NOTE_NOT, 1))
		n.thread->state = n.before;
}

#endif
