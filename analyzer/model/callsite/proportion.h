/*
 * proportion.h - do the blocks of a call site follow, from request to request, the size of what was
 * made before each of them? Keys and values follow the prompt, in whatever order sizes come. Then a
 * block out of the ordinary is no accident: its input was long. Decided by sizes alone: the line
 * through the earlier pairs also leads through the last one, which is far from them.
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

/* The blocks of `callsite` follow what was made before each of them at `driver`. Filled by
 * proportion.c, const for all others. */
struct proportion_found {
	uint32_t callsite, driver; /* CALLSITE_NONE: there are none */
	uint64_t target, input; /* the one out of the ordinary, and what was made for it */
	uint64_t typical; /* of those before */
	uint64_t pairs;
	double fit, slope; /* of logarithms: slope 1 is proportional, 2 its square */
	/* Both are made again and again in the same sizes before they change: layer by layer. */
	bool layered;
};

struct proportion {
	struct callsites *callsites;
	uint32_t callsite; /* whose blocks are looked at; CALLSITE_NONE: none is large */
	uint64_t target; /* size of the one that is to be explained */
	uint32_t times; /* that one of that size was met */
	struct pairs *pairs; /* by call site */
	VEC(uint32_t) made; /* call sites that made something since the last such block */
};

/* Choose the call site to explain. `refused`: bytes that were asked for at callsites->failed; 0:
 * nothing was refused. 0 or -ENOMEM; call proportion_fini() in any case. */
int proportion_init(struct proportion *p, struct callsites *callsites, uint64_t refused);
/* 0 or -ENOMEM. */
int proportion_apply(struct proportion *p, const struct event *e);
/* Fill callsites->proportion. */
void proportion_finish(struct proportion *p);
void proportion_fini(struct proportion *p);

#endif
