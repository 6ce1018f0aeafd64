/*
 * bootstrap_arena.h - a small arena for allocations that arrive while the real functions are being
 * looked up. Blocks are never freed. Any thread, signal-safe.
 */
#ifndef SHIM_BOOTSTRAP_ARENA_H
#define SHIM_BOOTSTRAP_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOTSTRAP_BYTES 65536u

extern uint8_t bootstrap_arena[BOOTSTRAP_BYTES];

/* Return a zeroed block; NULL: the arena is full. `align` is a power of two. */
void *bootstrap_alloc(size_t size, size_t align);
size_t bootstrap_size(const void *p);

static inline bool bootstrap_owns(const void *p)
{
	return (uintptr_t)p - (uintptr_t)bootstrap_arena < BOOTSTRAP_BYTES;
}

#endif
