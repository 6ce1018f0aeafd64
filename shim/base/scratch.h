/*
 * scratch.h - memory for a piece of work that must not be refused it when it is due: one mapping of
 * ours that is asked for beforehand, taken piece by piece, and let go of as a whole. What it lacks
 * is asked for then.
 *
 * One user at a time, who has a lock of its own, with signals blocked.
 */
#ifndef SHIM_HOLD_H
#define SHIM_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCRATCH_MORE 8u

struct hold {
	uint8_t *base;
	size_t bytes, used;
	size_t resident; /* of it, at the least */
	struct {
		void *pages;
		size_t bytes;
	} more[SCRATCH_MORE]; /* what did not fit */
	unsigned more_count;
	bool refused; /* a scratch_take() since the last scratch_end() */
};

/* Nothing is taken. From here on so many bytes of address space are there, and not very many more,
 * of which so many have their pages, too. False: refused, and what was there still is. */
bool scratch_ready(struct hold *h, size_t bytes, size_t resident);

/* What scratch_take() takes of it for so many. */
size_t scratch_piece(size_t bytes);

/* Zeros, aligned to pages, until scratch_end(); NULL: neither held nor to be had. */
void *scratch_take(struct hold *h, size_t bytes);

/* All that was taken is free again. */
void scratch_end(struct hold *h);

/* Nothing is held any more; also in the child of a fork, whoever was at it. */
void scratch_forget(struct hold *h);

#endif
