/*
 * levels_malloc.h - asks the allocator what it holds: glibc's mallinfo2(), jemalloc's mallctl(),
 * tcmalloc's MallocExtension, mimalloc's mi_process_info(). These take every lock of the allocator.
 * So they are called seldom: after a call of the malloc family has failed and returned; and, since
 * a killed process cannot be asked, after a call that returned when the process has grown by an
 * eighth. The calling thread cannot be inside the allocator: code that may stop other threads
 * anywhere, and must not wait for them, does not call malloc and so does not come here. Not in a
 * signal handler, nor in the child of a fork, where the parent's other threads may have left locks
 * taken.
 */
#ifndef SHIM_LEVELS_MALLOC_H
#define SHIM_LEVELS_MALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "levels/levels.h"

#define LEVELS_MALLOC_MAX 5

/* Find the owner's functions. At start and in the child of a fork. */
void levels_malloc_init(void);

/* After a failure: can the allocator be asked, and is it time? A heap with many free blocks answers
 * slowly; answers take at most a fiftieth of the time. True for one thread, which may ask. */
bool levels_malloc_due(uint64_t now_ticks);

/* The same without a failure: is it time, and has the process grown enough, with `resident` bytes
 * now? After an answer that took over 2 ms the size must double first. */
bool levels_malloc_grown(uint64_t now_ticks, uint64_t resident);

/* Ask, with signals blocked. The allocator's own calls arrive at our wrappers. `resident`: as for
 * levels_malloc_grown(), 0 after a failure. Returns the number filled in; 0: no answer. */
unsigned levels_malloc_read(struct level *out, uint64_t resident);

#endif
