/*
 * levels_malloc.h - what the allocator itself says it holds: glibc's mallinfo2(), jemalloc's
 * mallctl(), tcmalloc's MallocExtension, mimalloc's mi_process_info(). They take every lock that
 * the allocator has. So they are asked seldom: after a call of malloc's own family has failed and
 * come back; and, as who is killed cannot be asked any more, after one that came back when the
 * process has grown by an eighth since. By a thread that cannot be inside the allocator: where code
 * may run that stops other threads at any point and must not wait for one of them, it does not call
 * malloc, and so does not come here either. Not in a signal handler, nor in the child of a fork,
 * where another thread of the parent may have held a lock that nobody gives back.
 */
#ifndef SHIM_LEVELS_MALLOC_H
#define SHIM_LEVELS_MALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "levels/levels.h"

#define LEVELS_MALLOC_MAX 5

/* Finds the owner's functions. */
void levels_malloc_init(void);

/* After a failure: is there somebody to ask, and is it time? Of a heap with many free blocks an
 * answer takes long: at most a fiftieth of the time goes into them. True for one thread; it asks,
 * or forgoes. */
bool levels_malloc_due(uint64_t now_ticks);

/* The same while nothing fails: is it time, and has the process, with so many bytes resident now,
 * grown since by so much that it is worth asking again? An answer that took over 2 ms is next asked
 * for at twice the size. */
bool levels_malloc_grown(uint64_t now_ticks, uint64_t resident);

/* Asks, with signals held back. Calls the allocator: calls that it makes itself arrive at our
 * wrappers. `resident`: as levels_malloc_grown() was told, 0 after a failure. The number filled in,
 * 0 when it does not say. */
unsigned levels_malloc_read(struct level *out, uint64_t resident);

#endif
