/*
 * heap.h - memory for the simulated device's own tables, directly from the kernel: it is not in the
 * host's heap, and a recorder in front of libc does not see it.
 *
 * Any thread; holds a lock of its own for a few instructions.
 */
#ifndef SIMGPU_HEAP_H
#define SIMGPU_HEAP_H

#include <stddef.h>

/* Returns zeroed memory; NULL: the kernel refuses. */
void *heap_new(size_t bytes);
/* Frees it; `bytes` as in heap_new(). */
void heap_free(void *p, size_t bytes);

/* Frees the lock in the child of a fork, where no other thread can hold it. */
void heap_after_fork(void);

#endif
