/*
 * python.h - the frames of the CPython interpreter on the calling thread, read with plain loads and
 * two exported accessor functions. Takes no GIL, allocates nothing from the host, runs no Python.
 */
#ifndef SHIM_PYTHON_H
#define SHIM_PYTHON_H

#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct python_task;
struct python_walk; /* per thread, made at first use */

struct python_frame {
	uint32_t code; /* id of a CODE definition, already written; 0: not known */
	int32_t lasti; /* byte offset of the instruction, -1 not started */
};

/* Frames that one native frame of the interpreter runs. */
struct python_run {
	uintptr_t anchor; /* an address within that native frame, 0 where there is none (<= 3.9) */
	uint32_t first, count; /* of frames[], which is outermost first */
};

struct python_view {
	const struct python_frame *frames; /* outermost first */
	uint32_t count;
	const struct python_run *runs; /* outermost first, covering all frames */
	uint32_t run_count;
	uint32_t same; /* this many outermost frames are as in this thread's previous view */
	uint32_t same_runs; /* and as many runs, with all their frames, anchors included */
	bool cut; /* more than PYTHON_FRAMES_MAX: these are the innermost */
	const struct python_task *task; /* see python_task.h */
};

#define PYTHON_FRAMES_MAX 65536u

/* A visitor (visit.h): takes note of an interpreter, or of what changes its ways. */
bool python_look(const struct dl_phdr_info *info);

/* What python/ needs of folders above it. */
struct python_services {
	/* The bounds of the function and of the module at pc; 0, 0 where they are not known. */
	void (*code_at)(uintptr_t pc, uintptr_t function[2], uintptr_t module[2]);
	/* The task of that key has ended; `caller` is the return address of the call that ended it.
	 */
	void (*task_ended)(uintptr_t key, const void *caller);
};

/* After a visit: makes use of what was noted since the last time. `services` stays valid. */
void python_visited(const struct python_services *services);

extern _Atomic bool python_active_ __attribute__((visibility("hidden")));

static inline bool python_active(void)
{
	return atomic_load_explicit(&python_active_, memory_order_acquire);
}

/* The INFO "python": its version, and why its frames are not recorded if so. Written by
 * python_visited() when it finds one, again for the trace of a fork's child. */
void python_facts(void);

/* Is pc inside the interpreter's evaluation function (where that is known)? For versions whose
 * runs have no anchors. */
bool python_is_eval(uintptr_t pc);

/* False: no Python frames on this thread now (no interpreter, foreign thread, finalising). The
 * view is valid until this thread's next call. */
bool python_walk_now(struct python_walk **walk, struct python_view *view);

void python_fork_child(struct python_walk *own); /* code ids start afresh */
void python_thread_end(struct python_walk **walk);

#endif
