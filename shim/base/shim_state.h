/*
 * shim_state.h - the state of the recording in this process. lifecycle.c owns it and changes it at
 * the start, in the child of a fork and at the end; rights.c sets `sandboxed`, chunk_writer.c the
 * budget. Any thread may read it.
 */
#ifndef SHIM_SHIM_STATE_H
#define SHIM_SHIM_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum shim_mode {
	SHIM_UNSTARTED = 0,
	SHIM_STARTING,
	SHIM_RECORDING,
	SHIM_DORMANT, /* pass-through only: switched off, refused, or no place for a trace */
};

enum shim_alive {
	ALIVE_COPY = 0, /* a forked child without a trace of its own; fork zeroes the word */
	ALIVE,
	ALIVE_SETTLING, /* a thread of the child is making that trace */
};

struct shim_state {
	int mode; /* enum shim_mode */
	int pid; /* the process that the trace belongs to */
	bool budget; /* the budget is used up: small blocks are not recorded */
	bool budget_shared; /* it was the budget of all traces together */
	bool sandboxed; /* seccomp: the shim makes no system call any more */
	bool ending; /* the process has begun to exit */
	bool can_wipe; /* the kernel zeroes our pages at a fork */
	uint32_t *alive; /* enum shim_alive; NULL before the start */
	uintptr_t owner_low, owner_high; /* the module that owns malloc */
	uintptr_t own_low, own_high; /* the shim itself */
	bool owner_is_libc;
	uint64_t page_size;
	uint64_t threads_started; /* by pthread_create; any thread adds */
};
extern struct shim_state shim __attribute__((visibility("hidden")));

/* Is this process a forked child that still has no trace of its own? */
static inline bool shim_is_copy(void)
{
	return shim.alive && __atomic_load_n(shim.alive, __ATOMIC_RELAXED) == ALIVE_COPY;
}

/* The same, or is another thread making that trace now? */
static inline bool shim_is_unsettled(void)
{
	return shim.alive && __atomic_load_n(shim.alive, __ATOMIC_ACQUIRE) != ALIVE;
}

#endif
