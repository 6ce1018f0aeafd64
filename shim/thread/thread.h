/*
 * thread.h - what the recording keeps for each thread. Lives in pages of our own that a fork
 * zeroes, so that a child can never take its parent's chunk for its own. Only the thread itself
 * touches its state, and after its death whoever reaps it.
 */
#ifndef SHIM_THREAD_H
#define SHIM_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/stack.h"
#include "trace/trace_file.h"
#include "whyoom/trace.h"

/* The ALLOC that followed a stack in this chunk: what is not written when it follows it again. */
struct expected {
	uint32_t stack;
	uint32_t size; /* EXPECTED_LARGE: more than fits, and never as expected */
};
#define EXPECTED_LARGE UINT32_MAX

/* Not zeroed by fork: the child finds the states to use again, and what its parent had. */
struct thread_slot {
	struct thread *thread;
	struct walker *walker;
	struct stack_task task; /* of the walker */
	struct expected *expected; /* TRACE_EXPECTED_PLACES; NULL: nothing is */
	struct trace_chunk *chunk;
	uint32_t chunk_bytes;
	uint32_t tid; /* 0: free */
};

/* thread.state: what the thread is doing, so that a call that comes in between knows its place */
enum thread_doing {
	THREAD_IDLE = 0,
	THREAD_REAL, /* in the real function: nested calls are the allocator's, or a handler's */
	THREAD_RECORD, /* in the middle of a record: nested calls are a handler's */
};

/* A child may be borrowing this thread's memory: look at the pid first. */
enum thread_borrowed { THREAD_OWN = 0, THREAD_BORROWED, THREAD_BORROWED_FOR_EVER };

struct thread {
	/* for every event */
	uint8_t *pos; /* the next event goes here */
	uint8_t *limit; /* ordinary events begin below this; 0 sends every one to the slow path */
	uint64_t ticks; /* of the last event in the chunk */
	uint64_t address; /* of the last compact event */
	struct trace_chunk *chunk;
	struct expected *expected; /* the slot's, of this chunk; NULL: nothing is */
	uint32_t stack; /* of the last ALLOC */
	uint8_t state; /* enum thread_doing */
	bool no_notes; /* our own work: nested calls are not recorded at all */
	bool shared; /* the chunk is of type 3 */
	uint8_t vfork; /* enum thread_borrowed */
	bool untimed; /* it makes room for a record that has no time yet */
	uintptr_t frame; /* stack address of the call that set `state` */
	struct thread_slot *slot;

	/* for chunks */
	uint8_t *end; /* of what events may use, in need */
	uint8_t *begun; /* where in the chunk this thread began */
	uint8_t *window; /* the chunk has its pages up to here */
	uint8_t *metered; /* what was written up to here has been counted */
	struct file_chunk mapped;
	uint32_t serial, tid;
	uint32_t sequence; /* of the next chunk of its own */
	uint32_t side_open; /* side records being written */
	uint32_t side_claimed;
	uint32_t retry_shift; /* pause after a chunk could not be had */
	uint64_t retry_ticks;
	uint64_t lost; /* events since then */
	enum trace_drop lost_why;
	uint64_t level_ticks;
	uint32_t exit_rounds; /* of the key destructors */
	uint32_t task_turn; /* slot->task.turn when it was last recorded */
	const void *released; /* by the latest release, where only known blocks' are recorded */
};

extern __thread struct thread *thread_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* How a thread starts the recording, and gives a forked child a trace of its own: the functions of
 * lifecycle.h. lifecycle.c defines it, constant, since the first thread needs it before any
 * constructor has run. */
struct thread_lifecycle {
	bool (*start)(void);
	bool (*forked)(struct thread *self);
};
extern const struct thread_lifecycle thread_lifecycle;

/* The calling thread's state, made if need be; NULL: not recording, or not possible now. */
struct thread *thread_make(void);

/* For lifecycle.c: the states in a forked child; `self` is the calling thread's own, or NULL. */
void thread_forked(struct thread *self);

/* The same for the thread that forked, `self` its state, where another one has come first. False:
 * it is none of the parent's. */
bool thread_joins(struct thread *self);

/* After vfork: this thread's events look at the pid until one is the parent's; `for_ever` where the
 * parent does not wait for the child. */
void thread_mark_vfork(bool for_ever);

/* Once, when recording starts. */
void threads_init(void);

/* Pages that are zero in the child of a fork, where the kernel can do that (shim.can_wipe). */
void *thread_wiped_pages(size_t bytes);

/* Clears the calling thread's state, as a fork does where the kernel can. */
void thread_wipe(void);

/* Waits, for some milliseconds at most, until no other thread is in a record that it may have begun
 * before `ticks`: what happened up to there is then in the trace, and in our tables. */
void threads_settle(uint64_t ticks);

/* What the child of a fork unmaps: nothing from the moment at which the chunk may become somebody
 * else's, as in sys_pages_free(), and after a change of t->chunk the new one. */
void thread_chunk_leaves(struct thread *t);
void thread_chunk_changed(struct thread *t);

#endif
