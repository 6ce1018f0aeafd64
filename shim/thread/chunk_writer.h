/*
 * chunk_writer.h - writes events into the calling thread's chunk. Takes no lock and makes no system
 * call except when a chunk is full.
 */
#ifndef SHIM_CHUNK_WRITER_H
#define SHIM_CHUNK_WRITER_H

#include <string.h>

#include "thread/thread.h"

/* The longest compact event and the longest extended one, bytes. */
#define CHUNK_WRITER_EVENT_MAX 64u
#define CHUNK_WRITER_LONG_MAX 2048u
/* Kept free at the end of each chunk for failures and the end of the process. */
#define CHUNK_WRITER_RESERVE 4096u

/* Make room for `need` bytes at t->pos; the slow path. `important` events may use the reserves.
 * False: no room; the event of `size` bytes is counted as dropped. */
bool chunk_writer_make_room(struct thread *t, uint32_t need, bool important, uint64_t size);

static inline bool chunk_writer_room(struct thread *t, uint64_t size)
{
	return __builtin_expect(t->pos < t->limit, 1) ||
	       chunk_writer_make_room(t, CHUNK_WRITER_EVENT_MAX, false, size);
}

/* Publish everything before `pos`. */
static inline void chunk_writer_set_committed(struct thread *t, uint8_t *pos)
{
	t->pos = pos;
	__atomic_store_n(&t->chunk->committed,
	    (uint32_t)(pos - (uint8_t *)t->chunk - sizeof(struct trace_chunk)), __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* the process may be killed here */
}

/* Publish one compact event; its last two words go into the sum (TRACE_WORD). */
static inline void chunk_writer_commit(struct thread *t, uint8_t *pos)
{
	uint64_t last, before;

	chunk_writer_set_committed(t, pos);
	memcpy(&last, pos - TRACE_WORD, TRACE_WORD);
	memcpy(&before, pos - 2 * TRACE_WORD, TRACE_WORD);
	t->chunk->checksum += last + before;
}

/* Publish one extended event. */
void chunk_writer_commit_extended(struct thread *t, uint8_t *pos);

/* Write a record of a signal handler that interrupted this thread's record. */
void chunk_writer_side(struct thread *t, const struct trace_side *record);

/* Take the first chunk of a new thread: one that an ended thread left unfinished, or a new one.
 * False: *why. */
bool chunk_writer_open(struct thread *t, enum trace_drop *why);

/* The thread has ended: leave the rest of its chunk to others. */
void chunk_writer_close(struct thread *t);

/* Count the bytes written since the last call for --max-rate; see rate.h. */
void chunk_writer_meter(struct thread *t);

/* Free the table of a slot whose thread has ended. */
void chunk_writer_expected_free(struct thread_slot *slot);

/* In the child of a fork: forget all chunks of ended threads. */
void chunk_writer_forked(void);

#endif
