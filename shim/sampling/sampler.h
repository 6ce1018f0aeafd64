/*
 * sampler.h - which blocks are recorded: all; or all from a size on, and a sample of the smaller
 * ones by a Poisson process over their bytes. The process has no memory: a block of s bytes is
 * chosen with the probability 1 - exp(-s / mean), and its weight follows from that.
 *
 * Each thread counts bytes down. A block that does not reach the end costs a subtraction and a
 * comparison, and touches nothing that threads share. A signal handler may interrupt: then some
 * bytes count once too often or too seldom.
 */
#ifndef SHIM_SAMPLER_H
#define SHIM_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

struct sampler_state {
	bool on; /* not every block is recorded */
	/* Only releases of recorded blocks are recorded. Not after all blocks were recorded for a
	 * while: the table does not hold those. */
	bool by_table;
	/* releases of other blocks need not even mark the thread as in the real function */
	bool pass_frees;
	/* After an attach, while all blocks are recorded: releases of earlier blocks are told
	 * apart. */
	bool before;
	/* What calls test: is an acquisition, or a release, not simply recorded? */
	bool looks, checks;
	bool paused; /* no block is chosen; passing bytes are counted in the trace's header */
	uint32_t generation; /* raised by each change; then threads draw afresh */
	uint64_t mean; /* bytes for each chosen block */
	uint64_t exact_from; /* bytes: blocks from this size on are all recorded */
};
extern struct sampler_state sampler __attribute__((visibility("hidden")));

struct sampler_thread {
	uint64_t left; /* smaller blocks pass; never above exact_from. 0: each block is looked at */
	uint64_t more; /* bytes of the countdown beyond `left` */
	uint64_t mean; /* with which the countdown was drawn */
	uint64_t drawn; /* the sum of all countdowns so far */
	uint64_t random;
	uint32_t generation; /* 0: not begun */
	bool paused; /* when it was drawn */
	uint64_t counted; /* bytes of the countdown that are told, or passed outside a pause */
};
extern __thread struct sampler_thread sampler_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Choose blocks like this from now on: at the start and whenever it changes. */
void sampler_set(bool on, uint64_t mean, uint64_t exact_from);

/* The same at an attach: earlier blocks are not in the table, and their releases are told apart. */
void sampler_attach(bool on, uint64_t mean, uint64_t exact_from);

/* At a detach: calls that still come here must not be recorded, and go the longer way. */
void sampler_detach(void);

/* Count a block. True: it is not recorded, and nothing more is needed. False: call sampler_take()
 * once the block exists. */
static inline bool sampler_passes(uint64_t size)
{
	struct sampler_thread *s = &sampler_self;

	if (__builtin_expect(size >= s->left, 0))
		return false;
	s->left -= size;
	return true;
}

/* Are all blocks of this size recorded? */
static inline bool sampler_is_exact(uint64_t size)
{
	return !sampler.on || size >= sampler.exact_from;
}

enum sampler_take {
	SAMPLER_PASS,
	SAMPLER_EXACT, /* stands for itself: large, or the thread's first */
	SAMPLER_CHOSEN, /* stands for others too, by sampler_self.mean */
};
/* Decide on a block that sampler_passes() did not pass. Only while sampler.on. */
enum sampler_take sampler_take(uint64_t size);

/* Draw the bytes until the next chosen block: exponentially distributed, at least 1. `random`: 64
 * uniform bits. */
uint64_t sampler_draw(uint64_t random, uint64_t mean);

/* Return the bytes that a recorded block of `size` stands for, chosen by `mean` (0: every block
 * was): size / (1 - exp(-size / mean)), to a thousandth. */
uint64_t sampler_stands_for(uint64_t size, uint64_t mean);

/* Does a block that was chosen by `mean` stay in the sample by the larger mean `coarser`? Draws
 * with the chance that keeps its expected weight. */
bool sampler_stays(uint64_t size, uint64_t mean, uint64_t coarser);

/* Return the bytes that the calling thread has counted down: its small blocks. */
static inline uint64_t sampler_counted(void)
{
	return sampler_self.drawn - sampler_self.left - sampler_self.more;
}

/* In the child of a fork: begin another sequence than the parent's. */
void sampler_forked(void);

#endif
