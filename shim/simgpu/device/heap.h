/*
 * heap.h - memory for the simulated device's own tables. It comes from the kernel directly: nothing
 * of it is in the host's heap, and a recorder in front of libc does not see it.
 *
 * Any thread; a lock of its own, held for a few instructions.
 */
#ifndef SIMGPU_HEAP_H
#define SIMGPU_HEAP_H

#include <stddef.h>

/* Zeroed; NULL when the kernel refuses. Every pointer goes back with the size it was taken with. */
void *heap_new(size_t bytes);
void heap_free(void *p, size_t bytes);

/* A child of fork() has one thread: what another held is free. */
void heap_after_fork(void);

#endif
