/*
 * stack.h - turns the caller's position into a stack id: merges native frames (unwind.c) with the
 * interpreter's (python.c), gives equal stacks one id and writes each to the trace once. One walker
 * per thread, in memory of its own; never uses the host's heap, nor more than 2 KiB of its stack.
 */
#ifndef SHIM_STACK_H
#define SHIM_STACK_H

#include <stdbool.h>
#include <stdint.h>

struct walker; /* per thread, allocated at first use */

/* The frame that called the hook: its return address, its CFA (stack pointer after the return) and
 * its frame pointer register. */
struct stack_start {
	uintptr_t pc, sp, fp;
};

/* Takes the start of a walk. Pre: used directly in an exported wrapper, which is never inlined and
 * keeps a frame pointer. */
#if defined(__aarch64__) && defined(__clang__)
/* clang's __builtin_dwarf_cfa() is not the CFA here, so the walk begins in the wrapper itself; like
 * all frames of the shim it is not part of the stack. */
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
#endif

/* The Python task that the thread runs, see python_task.h. One per walker, zero at first. */
struct stack_task {
	uint64_t key; /* 0: none is known */
	uint32_t turn; /* raised whenever the key changes to another task */
	uint32_t seen;
};

/* Allocates the process-wide tables. Call before the first capture. Returns 0 or negative errno;
 * after an error every stack is 0. */
int stack_init(void);

/* Returns the id of the present stack; 0: it cannot be had. `python`: include the interpreter's
 * frames and update *task; false in releases and wherever the interpreter may be half torn down.
 * *walker is the thread's own. */
uint32_t stack_capture(
    struct walker **walker, const struct stack_start *start, bool python, struct stack_task *task);

/* Says whether the last capture met a signal frame or did not reach the outermost frame. The thread
 * may then have been interrupted anywhere, also inside the allocator. */
bool stack_interrupted(const struct walker *walker);

/* Forgets all ids in the child of a fork. The calling thread's walker stays usable. */
void stack_fork_child(struct walker *own);
/* Frees the thread's walker; *walker becomes NULL. */
void stack_thread_end(struct walker **walker);

/* Makes walks ask the kernel again what is readable. Call after the host unmapped memory or made it
 * unreadable (munmap, mremap, mprotect). Cheap; any thread. */
void stack_memory_unmapped(void);

/* Memory of stacks and their tables, bytes. */
uint64_t stack_own_bytes(void);

/* The bounds of the function and of the module at pc; those that are not known stay as they are. */
void stack_code_at(uintptr_t pc, uintptr_t function[2], uintptr_t module[2]);

#endif
