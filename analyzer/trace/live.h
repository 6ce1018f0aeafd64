/*
 * live.h - the table of live blocks, by address. A struct block does not move between its
 * acquisition and live_recycle(). Large tables take 62 to 72 bytes a block.
 */
#ifndef ANALYZER_TRACE_LIVE_H
#define ANALYZER_TRACE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"
#include "util/map.h"
#include "util/vec.h"

/* Slots are sorted by the slot where their hash belongs, so a search ends at the first that belongs
 * farther on, and the table may be nearly full. */
struct live_slot {
	uint32_t tag; /* low half of the hash; its low bits are the slot where it belongs */
	uint32_t index; /* of the block, plus 1; 0: free slot */
};

struct live {
	struct live_slot *slots;
	size_t mask, count, limit; /* limit: beyond it the table grows */
	VEC(struct block *) pools;
	uint32_t used; /* blocks ever taken from pools */
	uint32_t spare; /* first free block, plus 1; linked by .size */
	uint64_t bytes; /* sum of the live blocks' sizes */
};

/* Large enough that free() returns a pool to the system: see memory.h. */
#define LIVE_POOL_SHIFT 13u
#define LIVE_POOL_BLOCKS (1u << LIVE_POOL_SHIFT)

int live_init(struct live *live); /* 0 or -ENOMEM */
void live_fini(struct live *live);
/* Remove all blocks. `keep`: keeps the memory for as many again. */
void live_clear(struct live *live, bool keep);

/* Return the live block at the address (*lived: true), or a new one that is zero but for address
 * and size, which the caller must not change. NULL: no memory. */
struct block *live_find_or_add(struct live *live, uint64_t address, uint64_t size, bool *lived);
/* Remove a block from the table; NULL: none lives there. It stays readable until live_recycle().
 */
struct block *live_take(struct live *live, uint64_t address);
void live_recycle(struct live *live, struct block *block);
int live_each(const struct live *live, int (*fn)(void *arg, const struct block *b), void *arg);

static inline struct block *live_block(const struct live *live, uint32_t index)
{
	return &live->pools.items[index >> LIVE_POOL_SHIFT][index & (LIVE_POOL_BLOCKS - 1)];
}

/* Prefetch in two steps before a use: first the slot, some events later its block. Small tables are
 * cached anyway. always_inline, as gcc drops calls to a function whose only effect is a prefetch.
 */
#define LIVE_FAR (1u << 15) /* slots, 256 KiB */
static inline __attribute__((always_inline)) void live_prefetch_slot(
    const struct live *live, uint64_t address)
{
	if (live->mask >= LIVE_FAR)
		__builtin_prefetch(&live->slots[map_hash(address) & live->mask]);
}

static inline __attribute__((always_inline)) void live_prefetch_block(
    const struct live *live, uint64_t address)
{
	uint32_t index =
	    live->mask >= LIVE_FAR ? live->slots[map_hash(address) & live->mask].index : 0;

	if (index)
		__builtin_prefetch(live_block(live, index - 1));
}

#endif
