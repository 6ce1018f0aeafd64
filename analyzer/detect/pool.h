/*
 * pool.h - inside detect/: blocks of one size that were taken in one go and are kept ever since, as
 * the slots of the largest batch or the layers of a cache are.
 */
#ifndef ANALYZER_DETECT_POOL_H
#define ANALYZER_DETECT_POOL_H

#include "detect/detect.h"

struct pool {
	uint64_t bytes, blocks;
	uint64_t largest; /* block */
	bool asked; /* the refused request was to be the next of them */
	/* 0 to 1: it was taken in one go, or they are few enough for as many requests to be
	 * unlikely that left one each and did nothing besides. */
	double sure;
};

/* False: no such blocks lie at that place. */
bool pool_at(const struct scene *scene, uint32_t callsite, struct pool *out);

#endif
