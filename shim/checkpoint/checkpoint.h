/*
 * checkpoint.h - lets a process be recorded for weeks within its budget: writes what still matters
 * of the full chunks once more, and gives their disk space back. Only in mode sampled from the
 * start, as checkpoints need the live-block table.
 *
 * The thread that found no room for its next chunk makes the checkpoint, in some milliseconds; the
 * others go on. Callers block signals.
 */
#ifndef SHIM_CHECKPOINT_H
#define SHIM_CHECKPOINT_H

#include <stdint.h>

enum checkpoint_result {
	CHECKPOINT_MADE,
	CHECKPOINT_BUSY, /* another thread is making one */
	CHECKPOINT_FAILED, /* this time; nothing has changed */
	CHECKPOINT_NOT_WORTH, /* it would free too little, or the file system cannot punch holes */
};

/* The calling thread. */
struct checkpoint_caller {
	uint32_t serial, tid;
	/* Waits until no other thread is in a record that it began before `ticks`. */
	void (*settle)(uint64_t ticks);
};

/* Makes a checkpoint and frees the chunks that it replaces. The caller is in the middle of a record
 * whose time it has not taken yet. */
enum checkpoint_result checkpoint_make(const struct checkpoint_caller *caller);

/* Reserves the memory of the next checkpoint, once half of the budget is used: the system may
 * refuse it later. Call before each chunk. */
void checkpoint_reserve(void);

/* Waits until the checkpoint of another thread is made; at most 100 ms. */
void checkpoint_wait(void);

/* Estimates how many bytes of the file the next checkpoint takes, so that they are kept free for
 * it. 0: there will be none. */
uint64_t checkpoint_bytes_needed(void);

/* Starts anew in the child of a fork, whose file has no checkpoint. `start`: ticks at which its
 * file begins. */
void checkpoint_forked(uint64_t start);

#endif
