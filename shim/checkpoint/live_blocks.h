/*
 * live_blocks.h - the addresses of the blocks whose acquisition was recorded, where not all are:
 * only their releases are worth a record. Any thread, signal handlers included, at any time; no
 * lock.
 *
 * Whoever releases a block got it from whoever acquired it, so what live_blocks_add() stored before
 * the block was handed out is seen. An address is taken out before the real release, hence never by
 * the block that has it next.
 */
#ifndef SHIM_KNOWN_H
#define SHIM_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampling/sampler.h"

/* How many known addresses share a place: neighbours share one, so that it is in the cache when the
 * blocks are. 255 stays for ever. */
#define LIVE_BLOCKS_FILTER_SLOTS 65536u
extern uint8_t live_blocks_filter[LIVE_BLOCKS_FILTER_SLOTS] __attribute__((visibility("hidden")));

static inline uint8_t *live_blocks_slot(const void *block)
{
	uintptr_t at = (uintptr_t)block >> 10;

	return &live_blocks_filter[(at ^ at >> 16) % LIVE_BLOCKS_FILTER_SLOTS];
}

/* False: certainly not known. One load, no write. */
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

/* How a known block was acquired, as the trace has it. */
struct live_block {
	uint64_t birth; /* ticks of its record, never 0 */
	uint64_t size;
	uint64_t mean; /* it was chosen with; 0: it stands for itself */
	uint32_t stack;
	uint32_t thread, tid; /* serial number, and the kernel's */
	uint32_t api;
};

/* False: no memory for it. What is there already of that address was released unseen: it goes. */
bool live_blocks_add(const void *block, const struct live_block *how);

/* Room for more, where little is left: later there may be no memory for it. Not in a handler. */
void live_blocks_prepare(void);

/* Takes it out; *how (may be NULL): as it was added. False: it was not known. */
bool live_blocks_take(const void *block, struct live_block *how);

/*
 * What became of known blocks in the present period: for the record of a period that is
 * replaced. Bytes are what the blocks stand for.
 */
struct live_blocks_totals {
	uint64_t acquired, acquired_bytes, released, released_bytes;
	uint64_t live, live_bytes, most_bytes; /* now, and at the most */
	uint64_t live_sampled; /* of `live`, those that stand for others */
};
/* `mark`: a period ends here if it is followed by live_blocks_period_commit() with what this
 * returned, for the sums, which go on meanwhile; else by live_blocks_period_abort(). */
struct live_blocks_totals live_blocks_period(bool mark);
void live_blocks_period_commit(const struct live_blocks_totals *marked);
void live_blocks_period_abort(const struct live_blocks_totals *marked);

/*
 * Calls `each` for each block that is known and was acquired in this process at `until` or before;
 * what is added or taken meanwhile may be seen or not, but never half. `each` returns false to
 * stop; then so does this.
 */
bool live_blocks_each(uint64_t until,
    bool (*each)(void *arg, uint64_t address, const struct live_block *how), void *arg);

/* The block that live_blocks_each() showed so, if it is still there: from now on one of a sample by
 * `mean`; 0: not known any more, its release is like that of one that was never recorded. */
void live_blocks_thin(uint64_t address, uint64_t birth, uint64_t mean);

/* In the child of a fork, which goes on knowing what it inherited: `start`, ticks, is where its own
 * trace begins. */
void live_blocks_forked(uint64_t start);

/* Memory of the tables, bytes. */
uint64_t live_blocks_bytes(void);

#endif
