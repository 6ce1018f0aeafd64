/*
 * swings.h - how far the live bytes swing around a level that they keep: a cache that expires, or
 * requests that overlap, rise and fall without the rhythm of teeth.
 */
#ifndef ANALYZER_MODEL_SWINGS_H
#define ANALYZER_MODEL_SWINGS_H

#include "model/heap/timeline.h"

/* Bytes, after the start and before the last rise, which begins at the lowest point of the last
 * quarter. */
struct swings {
	uint32_t count; /* rises from the lower third to the upper one; 0: nothing is known */
	uint64_t usual, highest; /* median of the periods' tops; largest of them */
	uint64_t early, late; /* median tops of the first and of the second half */
	uint64_t low_early, low; /* lowest of the first half; of the last quarter */
};

/* Find the swings until moment_ns. The start ends with the first top as high as the usual one. */
void swings_find(const struct timeline *t, uint64_t moment_ns, struct swings *out);

#endif
