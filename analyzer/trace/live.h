/*
 * live.h - the blocks that live at the moment of reading: address to struct block. A block stays
 * where it is from its acquisition to live_recycle(); 62 to 72 bytes each once there are
 * many.
 */
#ifndef ANALYZER_TRACE_LIVE_H
#define ANALYZER_TRACE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/event.h"
#include "util/map.h"

/* They lie in the order of where they belong, which some are a little behind: so a search ends at
 * the first that belongs farther on, and the table may be nearly full. */
struct live_slot {
	uint32_t tag; /* low half of the hash; its low bits are the slot where it belongs */
	uint32_t index; /* of the block, plus 1; 0: free slot */
};

struct live {
	struct live_slot *slots;
	size_t mask, count, limit; /* more blocks take a larger table */
	struct block **pools;
	size_t pool_count, pool_capacity;
	uint32_t used; /* blocks ever taken from pools */
	uint32_t spare; /* 1 + the first released one's number, a list by .size */
	uint64_t bytes; /* sum of the live blocks' sizes */
};

/* As large as what is given back to the system when it is freed: see memory.h. */
#define LIVE_POOL_SHIFT 13u
#define LIVE_POOL_BLOCKS (1u << LIVE_POOL_SHIFT)

int live_init(struct live *live); /* 0 or -ENOMEM */
void live_fini(struct live *live);
/* Nothing lives. `keep`: it will be as much again at once, and what it took is not given back. */
void live_clear(struct live *live, bool keep);

/* The block that lives there; else it is new, all zero but for address and size, which the caller
 * leaves as they are, so that `bytes` stays true. NULL: no memory. */
struct block *live_find_or_add(struct live *live, uint64_t address, uint64_t size, bool *lived);
/* Takes the block out of the table; NULL: there is none. It is readable until live_recycle(). */
struct block *live_take(struct live *live, uint64_t address);
void live_recycle(struct live *live, struct block *block);
int live_each(const struct live *live, int (*fn)(void *arg, const struct block *b), void *arg);

static inline struct block *live_block(const struct live *live, uint32_t index)
{
	return &live->pools[index >> LIVE_POOL_SHIFT][index & (LIVE_POOL_BLOCKS - 1)];
}

/* Two steps ahead of a use: first the slot, some events later the block it points at; few of them
 * are near anyway. Inline from the start: else gcc takes calls of what has no effect but that for
 * calls of nothing. */
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
