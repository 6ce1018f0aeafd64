/*
 * thread.h - the recording's state of each thread. It lies in pages that a fork zeroes, so that a
 * child never takes its parent's chunk for its own. Only the thread itself changes its state; after
 * its death, the thread that reaps it.
 */
#ifndef SHIM_THREAD_H
#define SHIM_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/stack.h"
#include "trace/trace_file.h"
#include "whyoom/trace.h"

/* The ALLOC that followed a given stack last time in this chunk. An equal one is written in
 * short. */
struct expected {
	uint32_t stack;
	uint32_t size; /* EXPECTED_LARGE: the size does not fit and matches nothing */
};
#define EXPECTED_LARGE UINT32_MAX

/* Not zeroed by a fork: the child finds the states to reuse and the mappings to drop. */
struct thread_slot {
	struct thread *thread;
	struct walker *walker;
	struct stack_task task; /* the walker's current task */
	struct expected *expected; /* TRACE_EXPECTED_PLACES entries; NULL: none */
	struct trace_chunk *chunk;
	uint32_t chunk_bytes;
	uint32_t tid; /* 0: free */
};

/* What the thread is doing; guard.c uses it to classify a nested call. */
enum thread_doing {
	THREAD_IDLE = 0,
	/* in the real function: nested calls come from the allocator or a signal handler */
	THREAD_REAL,
	THREAD_RECORD, /* writing a record: nested calls come from a signal handler */
};

/* Whether a vfork child may be using this thread's memory; then the pid decides. */
enum thread_borrowed { THREAD_OWN = 0, THREAD_BORROWED, THREAD_BORROWED_FOR_EVER };

struct thread {
	/* for every event */
	uint8_t *pos; /* the next event goes here */
	uint8_t *limit; /* ordinary events begin below this; NULL sends each one to the slow path */
	uint64_t ticks; /* of the last event in the chunk */
	uint64_t address; /* of the last compact event */
	struct trace_chunk *chunk;
	/* slot->expected while the chunk uses it; NULL: nothing is expected */
	struct expected *expected;
	uint32_t stack; /* of the last ALLOC */
	uint8_t state; /* enum thread_doing */
	bool no_notes; /* the shim's own work: nested calls are not recorded */
	bool shared; /* the chunk is of type TRACE_CHUNK_SHARED */
	uint8_t vfork; /* enum thread_borrowed */
	bool untimed; /* making room for a record whose time is not taken yet */
	uintptr_t frame; /* stack address of the call that set `state` */
	struct thread_slot *slot;

	/* for chunks */
	uint8_t *end; /* important events may use the chunk up to here */
	uint8_t *begun; /* where in the chunk this thread began */
	uint8_t *window; /* pages of the chunk are populated up to here */
	uint8_t *metered; /* bytes up to here are counted for --max-rate */
	struct file_chunk mapped;
	uint32_t serial, tid;
	uint32_t sequence; /* of this thread's next own chunk */
	uint32_t side_open; /* side records being written */
	uint32_t side_claimed;
	uint32_t retry_shift; /* backoff after no chunk could be had */
	uint64_t retry_ticks;
	uint64_t lost; /* events lost since then */
	enum trace_drop lost_why;
	uint32_t exit_rounds; /* rounds of key destructors so far */
	uint32_t task_turn; /* slot->task.turn when the task was last recorded */
	/* the block of the latest release, where only recorded blocks' releases are recorded */
	const void *released;
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

/* Return the calling thread's state and create it if needed. NULL: the process is not recorded, or
 * no state can be had now. Blocks signals meanwhile. */
struct thread *thread_make(void);

/* Take over the parent's thread states in the child of a fork. `self` is the calling thread's
 * state, or NULL. */
void thread_forked(struct thread *self);

/* The same for the thread that forked, `self` being its state, when another thread of the child
 * came first. False: `self` is none of the parent's states. */
bool thread_forked_late(struct thread *self);

/* After vfork: until an event is the parent's own, this thread's events check the pid. `for_ever`:
 * the parent does not wait for the child. */
void thread_mark_vfork(bool for_ever);

/* Have the end of threads reported. Once, when recording starts. */
void thread_init(void);

/* At a detach, after shim.mode and sampler_detach(): wait until no thread is in a record, and close
 * all threads' chunks. False: some thread stays in a record, and its chunk stays open. */
bool thread_detach(void);

/* When a new trace begins in a process that had one: forget the old trace in all threads' states.
 * False: some thread is still in a record of the old one. */
bool thread_attach(void);
/* Define these threads in the new trace. */
void thread_define_all(void);

/* Return zeroed pages that a fork zeroes for the child, if the kernel can (shim.can_wipe); NULL:
 * none. */
void *thread_wiped_pages(size_t bytes);

/* Zero the calling thread's state, as fork does where the kernel can. */
void thread_wipe(void);

/* Wait, a few milliseconds at most, until no other thread is in a record that it may have begun
 * before `ticks`. Everything up to that time is then in the trace and in the tables. */
void thread_settle(uint64_t ticks);

/* Tell a forked child which chunk to unmap: none from the moment the chunk may become another's, as
 * in sys_pages_free(); after a change of t->chunk, the new one. */
void thread_chunk_leaves(struct thread *t);
void thread_chunk_changed(struct thread *t);

#endif
