/*
 * lifecycle.h - the state of the recording in this process: from its start over forks to its end.
 */
#ifndef SHIM_LIFECYCLE_H
#define SHIM_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

enum shim_mode {
	SHIM_UNSTARTED = 0,
	SHIM_STARTING,
	SHIM_RECORDING,
	SHIM_DORMANT, /* only pass-through: switched off, refused, or nowhere to write */
};

enum shim_alive {
	ALIVE_COPY = 0, /* this process is a copy that has not noticed yet */
	ALIVE,
	ALIVE_SETTLING, /* it has, and a thread makes it a trace of its own */
};

struct shim_state {
	int mode; /* enum shim_mode */
	int pid; /* whose trace this is */
	bool budget; /* the budget is reached: small blocks are left out */
	bool budget_shared; /* and it is the one of all traces together */
	bool sandboxed; /* by seccomp, so strictly that no system call of ours is made any more */
	bool ending; /* the process has begun to exit */
	bool can_wipe; /* memory of ours can be zeroed by fork itself */
	uint32_t *alive; /* enum shim_alive; zeroed by fork */
	uintptr_t owner_low, owner_high; /* the module that owns malloc */
	uintptr_t own_low, own_high; /* our own */
	bool owner_is_libc;
	uint64_t page_size;
};
extern struct shim_state shim __attribute__((visibility("hidden")));

/* Begins to record if that is possible now. True: recording. */
bool lifecycle_start(void);

/* In a process that was forked: gives it a state and a trace of its own. `self` is the calling
 * thread's state, zeroed, or NULL. True: recording. Signals are blocked. */
struct thread;
bool lifecycle_forked(struct thread *self);

static inline bool lifecycle_is_copy(void)
{
	return shim.alive && __atomic_load_n(shim.alive, __ATOMIC_RELAXED) == ALIVE_COPY;
}

/* The same, or another thread is at its state and trace. */
static inline bool lifecycle_is_unsettled(void)
{
	return shim.alive && __atomic_load_n(shim.alive, __ATOMIC_ACQUIRE) != ALIVE;
}

/* The process is about to end; enum trace_end and its status. */
void lifecycle_end(int how, int status);

#endif
