/*
 * python_task.h - tells apart the tasks that Python runs on one thread: a key for the current task
 * of asyncio or trio, or for the current green thread. Reads with plain loads; takes no GIL.
 * docs/python-frames.md says what serves as a key, and why.
 */
#ifndef SHIM_PYTHON_TASK_H
#define SHIM_PYTHON_TASK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "python/python_abi.h"

/* The task of a walk. */
struct python_task {
	uintptr_t context, root;
	uint32_t state;
	uint32_t turn; /* raised whenever `key` may name another task from now on */
	uint64_t key; /* 0: none */
	uint8_t thread; /* enum python_task_thread */
};

enum python_task_thread { PYTHON_THREAD_UNASKED, PYTHON_THREAD_MAIN, PYTHON_THREAD_OTHER };

/* Raised by 2 when a key's object is freed; bit 0: there are green threads, told apart by their
 * outermost frames. One word, as every capture reads it. */
extern _Atomic uint32_t python_task_state;
#define PYTHON_TASK_GREEN 1u
#define PYTHON_TASK_DEATH 2u

/* Prepares for an interpreter. `context_type`: PyContext_Type, or NULL. `ended`: called when a task
 * has ended, see python.h; NULL: the destructor of contexts is not wrapped. */
void python_task_init(const struct python_abi *abi, const void *context_type,
    void (*ended)(uintptr_t key, const void *caller));
/* Looks for greenlet among the loaded modules. Call when modules were loaded. */
void python_task_find_greenlet(void);
/* Writes the INFO "python.tasks": whether tasks are told apart, and why not. */
void python_task_write_info(void);

/* The slow path of python_task_now(). */
void python_task_changed(struct python_task *t, uintptr_t context, uintptr_t root, uint32_t state);

/* Updates *t. `context`: the thread state's current one, 0: none. `root`: the outermost frame of
 * Python code; 0 unless `state` has PYTHON_TASK_GREEN. */
static inline void python_task_now(
    struct python_task *t, uintptr_t context, uintptr_t root, uint32_t state)
{
	if (__builtin_expect(
		((context ^ t->context) | (root ^ t->root) | (state ^ t->state)) != 0, 0))
		python_task_changed(t, context, root, state);
}

/* Says whether the page at this address, which is about to be unmapped, was a key: then that task
 * has ended. Cheap. */
bool python_task_unmapped(uintptr_t address);

#endif
