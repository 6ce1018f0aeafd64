/*
 * record.h - how a record comes into the calling thread's chunk: what note.c and the other writers
 * of records share. Between record_begin() and record_end() a signal handler's calls go to the side
 * area; nothing in there may call the host.
 */
#ifndef SHIM_RECORD_H
#define SHIM_RECORD_H

#include "base/clock.h"
#include "base/options.h"
#include "base/shim_state.h"
#include "shim.h"

#define fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* From here to record_end() a handler's calls go to the side area. */
static inline void record_begin(struct thread *t)
{
	t->state = THREAD_RECORD;
	fence();
}

static inline void record_end(struct thread *t)
{
	fence();
	t->state = THREAD_REAL;
}

static inline uint64_t tick_now(struct thread *t)
{
	uint64_t now = clock_ticks();

	/* counters of two CPUs may differ by a little */
	return SHIM_LIKELY(now >= t->ticks) ? now : t->ticks;
}

/* An extended record, in two steps: its body is written behind room for the longest length. */
struct extended {
	uint8_t *start, *body;
	uint64_t now;
};

/* Room for `need` bytes, or false: counted as dropped. `important`: may use the chunk's reserve. */
bool extended_begin(struct thread *t, struct extended *x, enum trace_event_kind kind, uint32_t need,
    bool important, uint64_t size);
uint8_t *extended_dt(struct thread *t, struct extended *x);
void extended_end(struct thread *t, struct extended *x, uint8_t *end);

/* What is not a compact event cannot go to the side area: counted. */
bool plain(struct note n);

/* The thread goes on with another task: what it records from here on is that one's. */
void record_task(struct thread *t);

/* The present stack, and before the record of which it will be a part, the task. */
static inline uint32_t capture(struct note n, const struct stack_start *start)
{
	struct thread_slot *slot = n.thread->slot;
	uint32_t stack;

	if (SHIM_UNLIKELY(!options.stacks || shim.sandboxed))
		return 0;
	stack = stack_capture(&slot->walker, start, n.before == THREAD_IDLE, &slot->task);
	if (SHIM_UNLIKELY(slot->task.turn != n.thread->task_turn))
		record_task(n.thread);
	return stack;
}

#endif
