/*
 * stack.h - from a place in the code to a stack id: native frames by unwind.c, the interpreter's by
 * python.c, merged, hash-consed, and written to the trace once. One walker per thread; everything
 * it needs is its own memory, never the host's heap or more than 2 KiB of the host's stack.
 */
#ifndef SHIM_STACK_H
#define SHIM_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct walker; /* per thread, made at first use */

/* The frame that called the hook: its return address, its CFA (stack pointer after the return) and
 * its frame pointer register. */
struct stack_start {
	uintptr_t pc, sp, fp;
};

/* Call in an exported wrapper itself: it is never inlined and keeps a frame pointer. */
#if defined(__aarch64__) && defined(__clang__)
/* clang's __builtin_dwarf_cfa() is not the CFA here. The walk begins in the wrapper itself, which
 * is left out like all frames of the shim. */
#define STACK_START()                                                                              \
	__extension__({                                                                            \
		struct stack_start stack_start_;                                                   \
		__asm__ volatile("mov %1, sp\n\tadr %0, . + 4"                                     \
				 : "=&r"(stack_start_.pc), "=&r"(stack_start_.sp));                \
		stack_start_.fp = (uintptr_t)__builtin_frame_address(0);                           \
		stack_start_;                                                                      \
	})
#elif defined(__x86_64__) || defined(__aarch64__)
#define STACK_START()                                                                              \
	((struct stack_start){                                                                     \
	    .pc = (uintptr_t)__builtin_return_address(0),                                          \
	    .sp = (uintptr_t)__builtin_dwarf_cfa(),                                                \
	    .fp = *(uintptr_t *)__builtin_frame_address(0),                                        \
	})
#else
#error "no frame layout for this architecture"
/* The bounds of the function and of the module at pc; those that are not known stay as they are. */
void stack_code_at(uintptr_t pc, uintptr_t function[2], uintptr_t module[2]);

#endif

/* What the interpreter's thread was working at, where it said so: see python_task.h. One per
 * walker, zero at first. */
struct stack_task {
	uint64_t key; /* 0: none is known */
	uint32_t turn; /* raised whenever the key is another task's from now on */
	uint32_t seen;
};

/* Process-wide tables; before the first capture. 0, or negative errno: then stacks are 0. */
int stack_init(void);

/* The id of the present stack, 0 when it cannot be had. `python`: look for the interpreter's
 * frames too (never in releases, nor where the interpreter may be half torn down), and for its
 * task. */
uint32_t stack_capture(
    struct walker **walker, const struct stack_start *start, bool python, struct stack_task *task);

/* Did the last capture come upon a signal's frame, or not reach the outermost one? Then the thread
 * may have been interrupted anywhere, the allocator included. */
bool stack_interrupted(const struct walker *walker);

/* In the child of a fork: forget all ids; the calling thread's walker stays usable. */
void stack_fork_child(struct walker *own);
void stack_thread_end(struct walker **walker);

/* Before dlopen or dlclose, and after: rows of modules that are gone are dropped. In between, where
 * constructors run and another library may already lie where one was, each look-up asks the loader.
 * `changed` without `changing` is allowed, for changes heard of late. Any thread; not under a lock
 * that an allocation could need. */
void stack_modules_changing(void);
struct visitor; /* visit.h: they see what has come; false: not all of it yet */
bool stack_modules_changed(const struct visitor *visitors, size_t count);
void stack_modules_unchanged(void); /* instead, where nothing has come or gone */

/* After the host unmapped memory or took away its read permission (munmap, mremap, mprotect): what
 * was found readable is asked for again. Cheap. */
void stack_memory_unmapped(void);

/* Bytes of our own memory that stacks use now. */
uint64_t stack_own_bytes(void);

/* The bounds of the function and of the module at pc; those that are not known stay as they are. */
void stack_code_at(uintptr_t pc, uintptr_t function[2], uintptr_t module[2]);

#endif
