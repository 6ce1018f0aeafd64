/*
 * sizes.h - the sizes of a call site's blocks from step to step: do they rise, from what to what?
 * Fills struct callsite_sizes, which is const for all others.
 */
#ifndef ANALYZER_MODEL_SIZES_H
#define ANALYZER_MODEL_SIZES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/stack/stack_stats.h"

#define CALLSITE_STEPS STACK_STATS_COHORTS

struct callsite;
struct callsite_member;
struct callsites;
struct timeline;

struct size_at {
	uint64_t time_ns;
	double size;
};

/* The sizes of its blocks, in order of occurrence: the largest of each step. A line may make
 * several kinds of blocks (a string, and the list that it was joined from), so this is the history
 * of the stack that grows most, or else of the whole call site. */
struct callsite_sizes {
	struct size_at at[CALLSITE_STEPS];
	uint32_t count;
	uint64_t live_bytes; /* of the stacks with this history */
	uint64_t start; /* of the very first step */
	uint64_t first, last; /* typical of the first eighth and the last quarter */
	double tau, tau_late; /* of all, of the second half */
	bool grows; /* larger from step to step, until the moment */
	bool geometric; /* by a factor, as a container's capacity */
	uint64_t grown_bytes; /* live bytes beyond as many blocks of size `first` */
};

/* A shorter series proves nothing. */
#define SIZES_MIN 4u

/* Read the sizes from a call site's steps and stacks. If the allocator enlarges requests by less
 * than `padding` bytes, the smallest of similar blocks shows the requested size. */
void sizes_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    uint64_t padding, struct callsite_sizes *out);
/* Compare with the other call sites, once survivors are known: take growth back that is over, or
 * that is nothing beside the line's other blocks. `out` is of `c`, one of `all`. */
void sizes_settle(const struct callsites *all, const struct callsite *c,
    const struct timeline *timeline, struct callsite_sizes *out);

/* True if the values rise, however little. */
bool sizes_rise(const struct callsite_sizes *s);

#endif
