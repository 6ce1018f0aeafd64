/*
 * python_task.h - what the calling thread is working at, where Python has several things in hand on
 * one thread: a key for the current one of asyncio's or trio's tasks, or of the green threads.
 * Reads with plain loads; takes no GIL. docs/python-frames.md says what serves as a key, and why.
 */
#ifndef SHIM_PYTHON_TASK_H
#define SHIM_PYTHON_TASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "python/python_abi.h"

/* One of these per walk: what was seen last. */
struct python_task {
	uintptr_t context, root;
	uint32_t state;
	uint32_t turn; /* raised whenever `key` is another task's from now on, or may be */
	uint64_t key; /* 0: none */
	uint8_t thread; /* enum python_task_thread */
};

enum python_task_thread { PYTHON_THREAD_UNASKED, PYTHON_THREAD_MAIN, PYTHON_THREAD_OTHER };

/* Raised by 2 when a key's object dies; bit 0: there are green threads, which their outermost
 * frames tell apart. One word, because it is read at every stack. */
extern _Atomic uint32_t python_task_state;
#define PYTHON_TASK_GREEN 1u
#define PYTHON_TASK_DEATH 2u

/* Once the layout is known. `context_type`: PyContext_Type, or NULL. `ended`: called when a task
 * has ended, see python.h; NULL: deaths are not watched. */
void python_task_init(const struct python_abi *abi, const void *context_type,
    void (*ended)(uintptr_t key, const void *caller));
/* New modules were loaded: is one of them greenlet's? */
void python_task_look(void);
/* The INFO "python.tasks": whether tasks are told apart, and why not. */
void python_task_facts(void);

/* What python_task_now() found changed. */
void python_task_changed(struct python_task *t, uintptr_t context, uintptr_t root, uint32_t state);

/* `context`: the thread state's current one, 0 none; `root`: the outermost frame of Python code, 0
 * when `state` says that nobody needs it. */
static inline void python_task_now(
    struct python_task *t, uintptr_t context, uintptr_t root, uint32_t state)
{
	if (__builtin_expect(
		((context ^ t->context) | (root ^ t->root) | (state ^ t->state)) != 0, 0))
		python_task_changed(t, context, root, state);
}

/* The page at this address is about to go: is it a key? Then that task has ended. Cheap. */
bool python_task_unmapped(uintptr_t address);

#endif
