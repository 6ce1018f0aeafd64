/*
 * resample.h - where what lives has no room in a checkpoint: blocks of the sample are left out of
 * it, those that stay stand for more, and new ones are chosen as seldom. A block that was chosen by
 * some mean would have been by a larger one with the chance p(larger) / p(mean): it stays with that
 * chance, by a draw of its own, and is as if it had been chosen by the larger mean. What was not
 * chosen but recorded exactly stays.
 *
 * By whoever makes the checkpoint, alone.
 */
#ifndef SHIM_THIN_H
#define SHIM_THIN_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/live_blocks.h"

struct resample_block {
	uint64_t address;
	struct live_block how;
};
#define RESAMPLE_GONE UINT64_MAX /* how.mean of one that did not stay */

struct resampling {
	uint64_t mean; /* by which the sample is from now on; 0: as it was */
	unsigned shift; /* so often twice what it was */
	uint64_t gone; /* blocks */
};

/* Chooses among so many blocks until they fit, bytes: `room` of what is exact and of what is of the
 * sample is at most `most`, and if it was not, far less, so that there is time until the next such.
 * `tight`: it was not, whatever they say. False: what is exact takes too much already. */
bool resample_fit(struct resampling *t, struct resample_block *blocks, uint64_t count,
    uint64_t most, bool tight, uint64_t (*room)(uint64_t exact, uint64_t sampled));

/* Once the checkpoint counts: blocks that are not in it are like those that were never recorded,
 * and new ones are chosen by the larger mean. Until here their releases were recorded, and release
 * nothing: so at no moment does the trace know a block whose release would not be in it. */
void resample_live_blocks(
    const struct resampling *t, const struct resample_block *blocks, uint64_t count);

/* True, once for each time: that is to be said in the trace, by the caller. */
struct resample_notice {
	uint64_t blocks; /* that did not stay */
	uint64_t mean, exact_from; /* from then on */
};
bool resample_notice_take(struct resample_notice *out);

/* In the child of a fork: what its parent had to say was of its parent's trace. */
void resample_forked(void);

#endif
