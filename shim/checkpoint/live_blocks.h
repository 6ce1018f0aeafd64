/*
 * live_blocks.h - the table of live blocks whose acquisition was recorded, for runs that record
 * only some: only the release of such a block is worth a record. Lock-free; any thread may call at
 * any time, signal handlers included, unless a function says otherwise.
 *
 * The thread that releases a block got it from the thread that acquired it, so it sees what
 * live_blocks_add() stored before the block was handed out. An address is removed before the real
 * release, hence never together with the block that has it next.
 */
#ifndef SHIM_LIVE_BLOCKS_H
#define SHIM_LIVE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampling/sampler.h"

/* Counts the live addresses of each slot. Neighbouring addresses share a slot, so that it is in the
 * cache when the blocks are. 255 is for ever. */
#define LIVE_BLOCKS_FILTER_SLOTS 65536u
extern uint8_t live_blocks_filter[LIVE_BLOCKS_FILTER_SLOTS] __attribute__((visibility("hidden")));

static inline uint8_t *live_blocks_slot(const void *block)
{
	uintptr_t at = (uintptr_t)block >> 10;

	return &live_blocks_filter[(at ^ at >> 16) % LIVE_BLOCKS_FILTER_SLOTS];
}

/* Says whether the block may be in the table; false is certain. One load, no write. */
static inline bool live_blocks_maybe(const void *block)
{
	return __atomic_load_n(live_blocks_slot(block), __ATOMIC_RELAXED) != 0;
}

/* Does the release of this block go without a record? Yes where only recorded blocks' releases are
 * recorded, and it is none of them. */
static inline bool live_blocks_ignores(const void *block)
{
	return sampler.by_table && !live_blocks_maybe(block);
}

/* How a block was acquired, as the trace has it. */
struct live_block {
	uint64_t birth; /* ticks of its record, never 0 */
	uint64_t size;
	uint64_t mean; /* of the sample it belongs to; 0: it stands for itself alone */
	uint32_t stack;
	uint32_t thread, tid; /* serial number, and the kernel's */
	uint32_t api;
};

/* Adds a block. False: no memory. A block that is still there at this address was released unseen
 * and is removed. */
bool live_blocks_add(const void *block, const struct live_block *info);

/* Grows the table while little room is left, as memory may be refused later. Not in a signal
 * handler. */
void live_blocks_reserve(void);

/* Removes a block that is released; *info (may be NULL) becomes what was added. False: it is not in
 * the table. */
bool live_blocks_take(const void *block, struct live_block *info);

/* Sums of the present period, for the record of a period that a checkpoint replaces. Bytes are
 * those that the blocks stand for. */
struct live_blocks_totals {
	uint64_t acquired, acquired_bytes, released, released_bytes;
	uint64_t live, live_bytes, peak_bytes;
	uint64_t live_sampled; /* of `live`, the blocks that stand for others */
};
struct live_blocks_totals live_blocks_totals(void);

/* Ends the period tentatively and returns its totals. Counting goes on meanwhile.
 * Post: the caller passes the totals to _commit, which leaves in the sums only what came since, or
 * to _abort, which lets the period continue. */
struct live_blocks_totals live_blocks_period_begin(void);
void live_blocks_period_commit(const struct live_blocks_totals *period);
void live_blocks_period_abort(const struct live_blocks_totals *period);

/* Calls `each` for each live block that this process acquired at `until` (ticks) or before. A block
 * that is added or removed meanwhile is shown or not, but never in part. Stops and returns false
 * when `each` does. */
bool live_blocks_each(uint64_t until,
    bool (*each)(void *arg, uint64_t address, const struct live_block *info), void *arg);

/* Resamples the block that live_blocks_each() showed, if it still lives: it stands for more by
 * `mean`, or, with mean 0, it is removed as if it had never been recorded. */
void live_blocks_resample(uint64_t address, uint64_t birth, uint64_t mean);

/* Removes all blocks. Pre: no other thread uses the table. */
void live_blocks_clear(void);

/* Starts new totals in the child of a fork. The inherited blocks stay in the table but are not the
 * child's own, whose trace begins at `start` (ticks). */
void live_blocks_forked(uint64_t start);

#endif
