/*
 * shim.h - the contract between hooks and core. A hook brackets the real call:
 *
 *	struct note n = note_enter(caller);	once in each exported wrapper
 *	note_free(n, ...)			releases, before the real call
 *	p = real.X(...);
 *	note_alloc(n, ...)			acquisitions, after it
 *	note_leave(n);
 *
 * Any thread, any moment, signal handlers included. Nothing here changes errno, allocates from the
 * host or fails visibly; losses are counted.
 */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H

#include "guard.h"
#include "stack/stack.h"
#include "whyoom/trace.h"

#define SHIM_EXPORT __attribute__((visibility("default"), noinline))
#define SHIM_LIKELY(x) __builtin_expect(!!(x), 1)
#define SHIM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Note that a block is about to be released. `flags`: TRACE_FREE_REALLOC or 0, and
 * NOTE_FREE_FOREIGN for a block that is not malloc's, which malloc_usable_size() does not know. */
#define NOTE_FREE_FOREIGN 0x100u
void note_free(struct note n, const void *block, unsigned flags);

/* Note that the release did not happen. */
void note_unfree(struct note n, const void *block);

/* Note that a block was acquired. `start`: where to begin the stack. */
void note_alloc(struct note n, enum trace_api api, const void *block, uint64_t size,
    const struct stack_start *start);

/* The same for note_of_idle(t), the common case: faster. */
void note_free_idle(struct thread *t, const void *block);
void note_alloc_idle(struct thread *t, enum trace_api api, const void *block, uint64_t size,
    const struct stack_start *start);

/* Note that a call ran out of memory. Other errors are ignored. */
struct note_failure {
	enum trace_api api;
	int error;
	uint64_t size, alignment, old;
};
void note_failed(
    struct note n, const struct note_failure *failure, const struct stack_start *start);

/* Mappings; lengths are rounded up to pages. */
struct note_mapping {
	enum trace_api api;
	uintptr_t address;
	uint64_t length, offset;
	int prot;
	unsigned flags; /* TRACE_MAP_* */
	unsigned backing; /* enum trace_backing */
	uint32_t name; /* string id */
	unsigned level_count; /* number of levels of its file system, if any */
	const struct level *levels;
};
void note_map(struct note n, const struct note_mapping *mapping, const struct stack_start *start);
void note_unmap(
    struct note n, enum trace_api api, uintptr_t address, uint64_t length, unsigned flags);
void note_ununmap(struct note n, uintptr_t address, uint64_t length);
void note_advise(struct note n, uintptr_t address, uint64_t length, int advice);
void note_brk(struct note n, uintptr_t before, uintptr_t after, const struct stack_start *start);

/* Note that the task with that key has ended: a later task of the same key is another one. */
void note_task_end(struct note n, uint64_t key);

/* Events of the process. */
void note_fork(struct note n, int child);
void note_signal(struct note n, int number);
void note_end(int how, int status); /* enum trace_end */

/* At an attach: first read all levels, as what was there before, and keep other threads from
 * recording any; then, once the recording has begun, record them. Pre: the caller is in no function
 * of the allocator's. */
void note_attach(void);
void note_base(void);

/* Set the function to call whenever levels are read, about ten times a second. */
void note_poll_with(void (*poll)(void));

/* In the child of a fork: its own levels are due. */
void note_forked(void);

#endif
