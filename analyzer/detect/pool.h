/*
 * pool.h - inside detect/: blocks of one size that were allocated in one go and are kept ever
 * since, like the slots of the largest batch or the layers of a cache.
 */
#ifndef ANALYZER_DETECT_POOL_H
#define ANALYZER_DETECT_POOL_H

#include "detect/detect.h"

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

#endif
