/*
 * proportion.h - do a call site's blocks follow, from request to request, the size of an earlier
 * block of the request? Keys and values follow the prompt, in whatever order sizes come. Then an
 * unusual block is no accident: its input was long. Decided by sizes alone: the line through the
 * earlier pairs also leads through the last pair, which is far from them.
 *
 * Fed with the events of a process until the moment of the call sites; constant memory for each
 * call site.
 */
#ifndef ANALYZER_MODEL_PROPORTION_H
#define ANALYZER_MODEL_PROPORTION_H

#include <stdbool.h>
#include <stdint.h>

#include "util/vec.h"

struct callsites;
struct event;
struct pairs;

/* The blocks of `callsite` follow the blocks of `driver` before them. Filled by proportion.c, const
 * for all others. */
struct proportion_found {
	uint32_t callsite, driver; /* CALLSITE_NONE: no such call sites */
	uint64_t target, input; /* the unusual block; its input */
	uint64_t typical; /* typical size of the earlier blocks */
	uint64_t pairs;
	double fit, slope; /* of logarithms: slope 1 is proportional, 2 is the square */
	/* Both are allocated repeatedly in the same sizes before they change: layer by layer. */
	bool layered;
};

struct proportion {
	struct callsites *callsites;
	uint32_t callsite; /* the call site to explain; CALLSITE_NONE: none is large */
	uint64_t target; /* size of the block to explain */
	struct pairs *pairs; /* by call site */
	VEC(uint32_t) made; /* call sites with a block since the last block to explain */
};

/* Choose the call site to explain. `refused`: bytes requested at callsites->failed; 0: nothing was
 * refused. 0 or -ENOMEM; call proportion_fini() in any case. */
int proportion_init(struct proportion *p, struct callsites *callsites, uint64_t refused);
/* 0 or -ENOMEM. */
int proportion_apply(struct proportion *p, const struct event *e);
/* Fill callsites->proportion. */
void proportion_finish(struct proportion *p);
void proportion_fini(struct proportion *p);

#endif
