/*
 * checkpoint.h - so that a process can be recorded for weeks in the space of its budget: what still
 * matters of the chunks that are full is written once more, and they are given back. Only where
 * records are by the table of known blocks (mode sampled, from the start).
 *
 * Takes milliseconds, of the one thread that found no room for its next chunk; the others go on.
 * What memory it takes is held from half of the budget on; signals are blocked by the caller.
 */
#ifndef SHIM_CHECKPOINT_H
#define SHIM_CHECKPOINT_H

#include <stdint.h>

enum checkpoint_result {
	CHECKPOINT_MADE,
	CHECKPOINT_BUSY, /* another thread is at it */
	CHECKPOINT_FAILED, /* now; everything is as it was */
	CHECKPOINT_NOT_WORTH, /* too little would become free; or this file system cannot */
};

/* The calling thread, in a record for which it has taken no time yet. */
struct checkpoint_caller {
	uint32_t serial, tid;
	/* Waits until no other thread is in a record that it began before `ticks`. */
	void (*settle)(uint64_t ticks);
};
enum checkpoint_result checkpoint_make(const struct checkpoint_caller *caller);

/* Before each chunk: from half of the budget on, holds what memory the next one will take, as it
 * may be refused when it is due. */
void checkpoint_prepare(void);

/* Until the one that another thread is making is there; 100 ms at most. */
void checkpoint_wait(void);

/* About what the next one takes itself, bytes: kept free for it. 0 where there will be none. */
uint64_t checkpoint_room(void);

/* In the child of a fork: its own file has none. `start`: ticks of its beginning. */
void checkpoint_forked(uint64_t start);

#endif
