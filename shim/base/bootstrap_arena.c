/*
 * bootstrap_arena.c - see bootstrap_arena.h. The word before each block holds its size.
 */
#include "base/bootstrap_arena.h"

uint8_t bootstrap_arena[BOOTSTRAP_BYTES] __attribute__((aligned(64)));
static size_t used_bytes;

void *bootstrap_alloc(size_t size, size_t align)
{
	size_t used = __atomic_load_n(&used_bytes, __ATOMIC_RELAXED), start, end;

	if (align < 16)
		align = 16;
	if (size > BOOTSTRAP_BYTES || align > BOOTSTRAP_BYTES)
		return NULL;
	do {
		start = (used + sizeof(size_t) + align - 1) & ~(align - 1);
		/* the arena is aligned to 64 only: align the address, not the offset */
		start =
		    (((uintptr_t)bootstrap_arena + start + align - 1) & ~(uintptr_t)(align - 1)) -
		    (uintptr_t)bootstrap_arena;
		end = start + (size ? size : 1);
		if (end > BOOTSTRAP_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(
	    &used_bytes, &used, end, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	((size_t *)(void *)(bootstrap_arena + start))[-1] = size;
	return bootstrap_arena + start;
}

size_t bootstrap_size(const void *p)
{
	return ((const size_t *)p)[-1];
}
