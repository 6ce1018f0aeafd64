/*
 * resample.h - makes a checkpoint fit when the live blocks do not: drops some sampled blocks, lets
 * the others stand for more, and samples new blocks as seldom. A block that was sampled with one
 * mean would have been sampled with a larger mean with chance p(larger) / p(mean), so it stays with
 * that chance and then counts as sampled with the larger mean. Exactly recorded blocks all stay.
 *
 * Only the thread that makes a checkpoint calls this, but for resample_notice_take().
 */
#ifndef SHIM_RESAMPLE_H
#define SHIM_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/live_blocks.h"

struct resample_block {
	uint64_t address;
	struct live_block info;
};
#define RESAMPLE_DROPPED UINT64_MAX /* info.mean of a dropped block */

struct resampling {
	uint64_t mean; /* of the sample from now on; 0: unchanged */
	unsigned shift; /* how many times the mean was doubled */
	uint64_t dropped; /* blocks */
};

/* What a checkpoint has room for, in bytes. */
struct resample_limit {
	uint64_t most;
	bool exceeded; /* the last checkpoint found no room, whatever the estimate says */
	uint64_t (*estimate)(uint64_t exact, uint64_t sampled); /* bytes for that many blocks */
};

/* Drops sampled blocks until the estimate fits. If it must drop any it goes well below the limit,
 * so that the next resampling is not due at once. False: the exact blocks alone take too much. */
bool resample_fit(struct resampling *t, struct resample_block *blocks, uint64_t count,
    const struct resample_limit *limit);

/* Applies a resampling to the live-block table and to the sampler. Pre: the checkpoint is
 * committed. Until then the releases of dropped blocks are recorded in vain, so that the trace
 * never knows a block whose release it would miss. */
void resample_live_blocks(
    const struct resampling *t, const struct resample_block *blocks, uint64_t count);

/* Returns true once after each resampling: the caller records the notice. Any thread. */
struct resample_notice {
	uint64_t blocks; /* that were dropped */
	uint64_t mean, exact_from; /* of the sample from then on */
};
bool resample_notice_take(struct resample_notice *out);

/* Drops the parent's pending notice, in the child of a fork. */
void resample_forked(void);

#endif
