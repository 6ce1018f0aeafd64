/*
 * freed_stats.h - of blocks that came and went, the host's and those of other spaces, by the stack
 * that acquired them: how many, their bytes, and the largest. A checkpoint holds of such blocks
 * nothing else; whether each was larger than the one before can be told by it. Bounded: of each
 * period so many stacks, those with the most bytes and those with the largest blocks, half of them
 * other spaces' where they have so many.
 */
#ifndef SHIM_GONE_H
#define SHIM_GONE_H

#include <stdint.h>

#include "checkpoint/live_blocks.h"
#include "whyoom/trace.h"

struct gone {
	uint64_t who; /* space << 32 | stack; 0: none */
	uint64_t blocks, bytes; /* that they stand for */
	uint64_t largest, birth; /* the largest one; ticks of its record */
	uint64_t life; /* from record to release, of all of them: 1024 ticks */
	uint64_t longest; /* of one: ticks */
};

/* A known block was released. Any thread, signal handlers included; no lock. */
void freed_stats_note(const struct live_block *how);
/* A block of another space was, some time ago: ticks of both. */
void freed_stats_note_of(
    uint32_t space, uint32_t stack, uint64_t size, uint64_t birth, uint64_t release);

/* The rest is by whoever makes a checkpoint, alone. */

/* At most so many of each period. */
#define FREED_STATS_STACKS 32u
uint32_t freed_stats_most(void);

/* A period ends at this moment: what goes from now on is the next one's. */
void freed_stats_period_begin(void);
/* It is number `period`, which ended at `end` (ticks). */
void freed_stats_period_commit(uint32_t period, uint64_t end);
/* Or it goes on, but for what went since freed_stats_period_begin(). */
void freed_stats_period_abort(void);
/* As periods are merged: the second one's come to the first one's, and are kept as number `to`. */
void freed_stats_merge(uint32_t first, uint32_t second, uint32_t to);
/* Those of a period; *count of them. */
const struct gone *freed_stats_of(uint32_t period, uint32_t *count);

/* In the child of a fork: nothing. */
void freed_stats_forked(void);

#endif
