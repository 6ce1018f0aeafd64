/*
 * sizes.h - the sizes of a call site's blocks from step to step: whether they rise, from what to
 * what. Fills struct callsite_sizes, which is const for all others.
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

/* The sizes of its blocks, by order of occurrence: the largest of each step. A line may make blocks
 * of several kinds (a string, and the list it was joined from), so this is the history of that one
 * of its stacks that grows most, or else of the whole call site. */
struct callsite_sizes {
	struct size_at at[CALLSITE_STEPS];
	uint32_t count;
	uint64_t live_bytes; /* of the stacks whose history this is */
	uint64_t start; /* of the very first step */
	uint64_t first, last; /* typical of the first eighth and the last quarter */
	double tau, tau_late; /* of all, of the second half */
	bool grows; /* larger from step to step, until the moment */
	bool geometric; /* by a factor, as a container's capacity */
	uint64_t grown_bytes; /* live beyond what as many blocks of size `first` would hold */
};

/* A shorter series of values says nothing. */
#define SIZES_MIN 4u

/* From the steps and the stacks of a call site. Where blocks are handed out larger than what was
 * asked for, by less than `padding` bytes, the smallest of those alike says what it was. */
void sizes_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    uint64_t padding, struct callsite_sizes *out);
/* Beside the other call sites, and once it is known what survived: takes growth back that is over,
 * or that is nothing beside what else the line made. `out` is of `c`, one of `all`. */
void sizes_settle(const struct callsites *all, const struct callsite *c,
    const struct timeline *timeline, struct callsite_sizes *out);

/* Whether the values rise, by however little. */
bool sizes_rise(const struct callsite_sizes *s);

#endif
