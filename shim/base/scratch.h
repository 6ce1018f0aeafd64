/*
 * scratch.h - memory for work that must not fail for want of it when it is due: one mapping that is
 * requested in advance, taken piece by piece, and released as a whole. If it is too small, more is
 * requested then.
 *
 * One user at a time, under a lock of its own, with signals blocked.
 */
#ifndef SHIM_SCRATCH_H
#define SHIM_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCRATCH_MORE 8u

struct scratch {
	uint8_t *base;
	size_t bytes, used;
	size_t resident; /* at least this many bytes of it are resident */
	struct {
		void *pages;
		size_t bytes;
	} more[SCRATCH_MORE]; /* pieces that did not fit */
	unsigned more_count;
	bool refused; /* a scratch_take() since the last scratch_end() */
};

/* Hold `bytes` of address space and not many more, with at least `resident` bytes populated.
 * Nothing is taken at that time. False: refused; the memory held before remains. */
bool scratch_ready(struct scratch *h, size_t bytes, size_t resident);

/* Return how many bytes scratch_take() uses for a piece. */
size_t scratch_piece(size_t bytes);

/* Take a zeroed, page-aligned piece until scratch_end(); NULL: neither held nor granted now. */
void *scratch_take(struct scratch *h, size_t bytes);

/* Return all pieces. */
void scratch_end(struct scratch *h);

/* Release all memory; also in the child of a fork, whatever the parent was doing. */
void scratch_forget(struct scratch *h);

#endif
