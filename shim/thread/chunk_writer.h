/*
 * chunk_writer.h - a thread's chunk: room for events, and their commit. No lock, no system call but
 * when a chunk is full.
 */
#ifndef SHIM_TBUF_H
#define SHIM_TBUF_H

#include <string.h>

#include "thread/thread.h"

/* No compact event is longer, and no extended one than CHUNK_WRITER_LONG_MAX. */
#define CHUNK_WRITER_EVENT_MAX 64u
#define CHUNK_WRITER_LONG_MAX 2048u
/* Kept at the end of each chunk for failures and the end of the process. */
#define CHUNK_WRITER_RESERVE 4096u

/* The slow path: room for `need` bytes at t->pos, or false; then the event has been counted as
 * dropped. `important`: may use the reserves. */
bool chunk_writer_make_room(struct thread *t, uint32_t need, bool important, uint64_t size);

static inline bool chunk_writer_room(struct thread *t, uint64_t size)
{
	return __builtin_expect(t->pos < t->limit, 1) ||
	       chunk_writer_make_room(t, CHUNK_WRITER_EVENT_MAX, false, size);
}

/* What lies before `pos` is valid from now on. */
static inline void chunk_writer_set_committed(struct thread *t, uint8_t *pos)
{
	t->pos = pos;
	__atomic_store_n(&t->chunk->committed,
	    (uint32_t)(pos - (uint8_t *)t->chunk - sizeof(struct trace_chunk)), __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST); /* a process may be killed in between */
}

/* One compact event more, and its two words: see TRACE_WORD. */
static inline void chunk_writer_commit(struct thread *t, uint8_t *pos)
{
	uint64_t last, before;

	chunk_writer_set_committed(t, pos);
	memcpy(&last, pos - TRACE_WORD, TRACE_WORD);
	memcpy(&before, pos - 2 * TRACE_WORD, TRACE_WORD);
	t->chunk->checksum += last + before;
}

/* One extended event more. */
void chunk_writer_commit_extended(struct thread *t, uint8_t *pos);

/* A record of a signal handler that interrupted its thread's recording. */
void chunk_writer_side(struct thread *t, const struct trace_side *record);

/* Takes the first chunk of a new thread: one that a thread left unfinished, or a new one. */
bool chunk_writer_open(struct thread *t, enum trace_drop *why);

/* The thread is gone: what room its chunk has left is for others. */
void chunk_writer_close(struct thread *t);

/* What the thread wrote since it was counted last counts for --max-rate: see rate.h. */
void chunk_writer_meter(struct thread *t);

/* Of a slot whose thread is gone. */
void chunk_writer_expected_free(struct thread_slot *slot);

/* In the child of a fork: nothing is parked. */
void chunk_writer_forked(void);

#endif
