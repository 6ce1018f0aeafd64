/*
 * record.h - writes a record into the calling thread's chunk; shared by note.c and the other
 * writers of records. Between record_begin() and record_end() a signal handler's calls go to the
 * side area, and nothing may call the host.
 */
#ifndef SHIM_RECORD_H
#define SHIM_RECORD_H

#include "base/clock.h"
#include "base/options.h"
#include "base/shim_state.h"
#include "shim.h"

#define record_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Send a handler's calls to the side area until record_end(). */
static inline void record_begin(struct thread *t)
{
	t->state = THREAD_RECORD;
	record_fence();
}

static inline void record_end(struct thread *t)
{
	record_fence();
	t->state = THREAD_REAL;
}

static inline uint64_t record_ticks(struct thread *t)
{
	uint64_t now = clock_ticks();

	/* the counters of two CPUs may differ a little */
	return SHIM_LIKELY(now >= t->ticks) ? now : t->ticks;
}

/* An extended record in two steps: its body is written first, behind room for the longest
 * length. */
struct extended {
	uint8_t *start, *body;
	uint64_t now;
};

/* Begin an extended record of up to `need` bytes; `important`: may use the chunk's reserve. False:
 * no room, counted as dropped with `size` bytes. Write extended_dt(), then the body, then call
 * extended_end(). */
bool extended_begin(struct thread *t, struct extended *x, enum trace_event_kind kind, uint32_t need,
    bool important, uint64_t size);
uint8_t *extended_dt(struct thread *t, struct extended *x);
void extended_end(struct thread *t, struct extended *x, uint8_t *end);

/* Can the call be recorded in full? Only compact events fit into the side area; others are counted
 * as lost. */
bool record_is_plain(struct note n);

/* Record that the thread continues with another task. */
void record_task(struct thread *t);

/* Capture the present stack, and record the task first if it has changed. 0: no stack. */
static inline uint32_t record_stack(struct note n, const struct stack_start *start)
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
