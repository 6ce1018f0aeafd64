/*
 * python.h - reads the frames of the CPython interpreter on the calling thread, with plain loads
 * and two exported accessor functions. Takes no GIL, allocates nothing from the host, runs no
 * Python.
 */
#ifndef SHIM_PYTHON_H
#define SHIM_PYTHON_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct python_task;
struct python_walk; /* per thread, allocated at first use */

struct python_frame {
	uint32_t code; /* id of a CODE definition that is written; 0: unknown */
	int32_t lasti; /* byte offset of the instruction; -1: not started */
};

/* The frames that one native frame of the interpreter runs. */
struct python_run {
	uintptr_t anchor; /* an address within that native frame; 0: not known (<= 3.9) */
	uint32_t first, count; /* of frames[], which is outermost first */
};

struct python_view {
	const struct python_frame *frames; /* outermost first */
	uint32_t count;
	const struct python_run *runs; /* outermost first, covering all frames */
	uint32_t run_count;
	uint32_t same; /* outermost frames that equal the thread's previous view */
	uint32_t same_runs; /* outermost runs that do, with their frames and anchors */
	bool cut; /* there are more than PYTHON_FRAMES_MAX; these are the innermost */
	const struct python_task *task; /* see python_task.h */
};

#define PYTHON_FRAMES_MAX 65536u

/* A visitor (visit.h): notes that a module brings an interpreter or greenlet. */
bool python_visit(const struct dl_phdr_info *info);

/* What python/ needs of folders above it. */
struct python_services {
	/* The bounds of the function and of the module at pc; 0, 0 where they are not known. */
	void (*code_at)(uintptr_t pc, uintptr_t function[2], uintptr_t module[2]);
	/* The task of that key has ended; `caller` is the return address of the call that ended it.
	 */
	void (*task_ended)(uintptr_t key, const void *caller);
};

/* Starts reading frames if visits since the last call noted an interpreter. `services` stays valid.
 */
void python_after_visit(const struct python_services *services);

extern _Atomic bool python_active_ __attribute__((visibility("hidden")));

static inline bool python_active(void)
{
	return atomic_load_explicit(&python_active_, memory_order_acquire);
}

/* Writes the INFO "python": the interpreter's version and, if its frames are not recorded, why.
 * python_after_visit() calls it; call it again for the trace of a fork's child. */
void python_write_info(void);

/* Says whether pc is inside the interpreter's evaluation function, as far as that is known. For
 * versions whose runs have no anchors. */
bool python_is_eval(uintptr_t pc);

/* Reads the thread's frames. False: there are none (no interpreter, foreign thread, finalising).
 * The view is valid until this thread's next call. Must not be called while memory is released. */
bool python_walk_now(struct python_walk **walk, struct python_view *view);

/* Starts code ids afresh, in the child of a fork. */
void python_fork_child(struct python_walk *own);
/* Frees the thread's walk; *walk becomes NULL. */
void python_thread_end(struct python_walk **walk);

#endif
