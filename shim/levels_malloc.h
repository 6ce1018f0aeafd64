/*
 * levels_malloc.h - what the allocator itself says it holds: glibc's mallinfo2(), or jemalloc's
 * mallctl(). Both take every lock that the allocator has. So they are asked seldom, after a call of
 * malloc's own family has failed and come back, by a thread that cannot be inside the allocator:
 * where code may run that stops other threads at any point and must not wait for one of them, it
 * does not call malloc, and so does not come here either. Not in a signal handler, nor in the child
 * of a fork, where another thread of the parent may have held a lock that nobody gives back.
 */
#ifndef SHIM_LEVELS_MALLOC_H
#define SHIM_LEVELS_MALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "levels.h"

#define LEVELS_MALLOC_MAX 5

/* Finds the owner's function. */
void levels_malloc_init(void);

/* Is there somebody to ask, and is it time? Of a heap with many free blocks an answer takes long:
 * at most a fiftieth of the time goes into them. True for one thread; it asks, or forgoes. */
bool levels_malloc_due(uint64_t now_ticks);

/* Asks, with signals held back. Calls the allocator: errno may change, and calls that it makes
 * itself arrive at our wrappers. The number filled in, 0 when it does not say. */
unsigned levels_malloc_read(struct level *out);

#endif
