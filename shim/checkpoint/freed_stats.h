/*
 * freed_stats.h - statistics of freed blocks by the stack that acquired them, for the host and for
 * other spaces: count, bytes, lifetimes and the largest block. They are all that a checkpoint says
 * of such blocks; the analyzer sees from them whether each block was larger than the one before.
 *
 * Bounded: each period keeps the stacks with the most bytes and those with the largest blocks, half
 * of them for other spaces if these have as many.
 */
#ifndef SHIM_FREED_STATS_H
#define SHIM_FREED_STATS_H

#include <stdint.h>

#include "checkpoint/live_blocks.h"
#include "whyoom/trace.h"

struct freed_stack {
	uint64_t key; /* space << 32 | stack; 0: none */
	uint64_t blocks, bytes; /* that they stand for */
	uint64_t largest, birth; /* the largest block; ticks of its record */
	uint64_t lifetime; /* of all blocks together, from record to release; unit: 1024 ticks */
	uint64_t longest_lifetime; /* of one block; ticks */
};

/* Adds a block of the host that is released now. Lock-free; any thread, also in a signal handler.
 */
void freed_stats_add_host(const struct live_block *info);
/* Adds a block of another space; `birth` and `release` in ticks, both past. */
void freed_stats_add_space(
    uint32_t space, uint32_t stack, uint64_t size, uint64_t birth, uint64_t release);

/* Only the thread that makes a checkpoint calls the rest. */

/* The most stacks that a period keeps, under any budget and under the present one. */
#define FREED_STATS_STACKS 32u
uint32_t freed_stats_stacks_max(void);

/* Ends the period tentatively: blocks that are freed from now on belong to the next one. */
void freed_stats_period_begin(void);
/* Keeps the ended period as number `period`; it ended at `end` (ticks). */
void freed_stats_period_commit(uint32_t period, uint64_t end);
/* Lets the period continue; blocks that were freed since freed_stats_period_begin() are not
 * counted. */
void freed_stats_period_abort(void);
/* Merges period `second` into `first`, and keeps the result as number `to`. */
void freed_stats_merge(uint32_t first, uint32_t second, uint32_t to);
/* Returns the stacks of a period; *count says how many. Valid until the next merge or commit. */
const struct freed_stack *freed_stats_period(uint32_t period, uint32_t *count);

/* Forgets everything, in the child of a fork. */
void freed_stats_forked(void);

#endif
