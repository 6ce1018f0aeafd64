/*
 * sampler.h - which blocks are recorded: all; or those from a size on, and of the others so many as
 * a Poisson process over their bytes hits. That has no memory: whatever came before, a block of s
 * bytes is chosen with the probability 1 - exp(-s / mean), which is what its weight is made of.
 *
 * Per thread, a countdown of bytes; who does not come to its end costs a subtraction and a compare,
 * and touches nothing of another thread's. A signal handler may come in between: then some bytes
 * are counted once too often or too seldom, no more.
 */
#ifndef SHIM_SAMPLER_H
#define SHIM_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

struct sampler_state {
	bool on; /* not all blocks are recorded */
	/* Nor all releases: those of known blocks alone. Not so any more once all were recorded for
	 * a while, as no table was kept of these. */
	bool by_table;
	bool pass_frees; /* and others need not even be seen to be in the real function */
	bool paused; /* nothing is chosen, and what passes is counted in the trace's header */
	uint32_t generation; /* raised by each change; threads draw afresh then */
	uint64_t mean; /* bytes for each that is chosen */
	uint64_t exact_from; /* bytes: blocks as large as this are all recorded */
};
extern struct sampler_state sampler __attribute__((visibility("hidden")));

struct sampler_thread {
	uint64_t left; /* smaller blocks pass; never above exact_from. 0: each one is asked about */
	uint64_t more; /* of the countdown, beyond `left` */
	uint64_t mean; /* that it was drawn with */
	uint64_t drawn; /* all countdowns so far */
	uint64_t random;
	uint32_t generation; /* 0: not begun */
	bool paused; /* as of then */
	uint64_t counted; /* of what it counted down, so much is told or was no pause's */
};
extern __thread struct sampler_thread sampler_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* How records are chosen from now on; at the start, and in between. */
void sampler_set(bool on, uint64_t mean, uint64_t exact_from);

/* True: the block is none of those that are recorded, and has been counted. For the very first
 * look; who is told false asks sampler_take() when the block is there. */
static inline bool sampler_passes(uint64_t size)
{
	struct sampler_thread *s = &sampler_self;

	if (__builtin_expect(size >= s->left, 0))
		return false;
	s->left -= size;
	return true;
}

/* All that are as large are recorded. */
static inline bool sampler_is_exact(uint64_t size)
{
	return !sampler.on || size >= sampler.exact_from;
}

enum sampler_take {
	SAMPLER_PASS,
	SAMPLER_EXACT, /* it stands for itself: large, or the thread's first */
	SAMPLER_CHOSEN, /* for others, too, by sampler_self.mean */
};
/* Only while sampler.on. */
enum sampler_take sampler_take(uint64_t size);

/* Bytes until the next one: exponentially distributed, at least 1. `random`: 64 even bits. */
uint64_t sampler_draw(uint64_t random, uint64_t mean);

/* Bytes that a recorded block of `size` stands for, of those that were chosen by `mean` (0: all
 * were): size / (1 - exp(-size / mean)), to a thousandth. */
uint64_t sampler_stands_for(uint64_t size, uint64_t mean);

/* Of a block that was chosen by `mean`: whether it is one of a sample by `coarser`, which is
 * larger. By a draw of its own, with the chance that makes it stand for as much, on average, as it
 * did. */
bool sampler_stays(uint64_t size, uint64_t mean, uint64_t coarser);

/* Bytes that the calling thread counted down so far: its small blocks. */
static inline uint64_t sampler_counted(void)
{
	return sampler_self.drawn - sampler_self.left - sampler_self.more;
}

/* In the child of a fork: another sequence than its parent's. */
void sampler_forked(void);

#endif
