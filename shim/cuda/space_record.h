/*
 * space_record.h - brackets of a record about a space other than the host, for cuda_note.c and
 * hook_torch.c. Any thread, at any time.
 */
#ifndef SHIM_SPACE_RECORD_H
#define SHIM_SPACE_RECORD_H

#include "record.h"
#include "thread/chunk_writer.h"

/* Begins a record. False: this moment allows none; nothing needs to be ended. */
static inline bool space_record_begin(struct note *n, const struct stack_start *start)
{
	*n = note_enter((const void *)start->pc);
	if (!record_is_plain(*n)) {
		note_leave(*n);
		return false;
	}
	record_begin(n->thread);
	return true;
}

static inline void space_record_end(struct note n)
{
	record_end(n.thread);
	note_leave(n);
}

/* Makes room for a record of at most `need` bytes, which extended_begin() then finds. `size` is
 * that of the block, for the count of dropped bytes. */
static inline bool space_record_reserve(struct thread *t, uint32_t need, uint64_t size)
{
	return SHIM_LIKELY(
		   t->pos < t->limit && t->pos + need <= t->limit + CHUNK_WRITER_EVENT_MAX) ||
	       chunk_writer_make_room(t, need, true, size);
}

#endif
