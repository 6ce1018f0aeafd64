/*
 * pool.h - blocks of one size that were allocated in one go and are kept ever since, like the slots
 * of the largest batch or the layers of a cache. Outside detect/ only the ledger includes it, for
 * what counts as such.
 */
#ifndef ANALYZER_DETECT_POOL_H
#define ANALYZER_DETECT_POOL_H

#include "detect/detect.h"
#include "util/tuned.h"

TUNED(unsigned, POOL_BLOCKS, 512u, "layers or slots of a batch are a few hundred at most");
TUNED(unsigned, POOL_ALIKE, 128u,
    "the more equal blocks, the likelier each is of a request that did nothing besides");
TUNED(unsigned, POOL_GO_PART, 8u,
    "a pool is taken at once; an eighth of the run allows for what else starts up");
TUNED(double, POOL_IN_FLIGHT, 0.5,
    "a pool or a model is put in place by one line of work, however close in time others make "
    "their own blocks");

struct pool {
	uint64_t bytes, blocks;
	uint64_t largest; /* block, in bytes */
	bool asked; /* the refused request was for one more of them */
	/* 0 to 1: they came in one go; or they are so few that as many requests, each leaving one
	 * and nothing else, are unlikely. */
	double sure;
};

/* Find such blocks at a call site. False: there are none. */
bool pool_at(const struct scene *scene, uint32_t callsite, struct pool *out);

/* True if the refused request is far larger than all blocks that its line made, and no work came
 * before it. Pre: a request was refused at a call site. */
bool pool_is_unlike(const struct scene *scene);
/* True if such a request is for the very first piece of room, by its name. */
bool pool_is_first_refused(const struct scene *scene);

#endif
