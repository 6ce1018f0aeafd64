/*
 * teeth.h - how the live bytes rose and fell before the last rise: work in requests or batches
 * makes teeth, and the height of the earlier ones says whether the last one is as usual.
 */
#ifndef ANALYZER_MODEL_TEETH_H
#define ANALYZER_MODEL_TEETH_H

#include "model/heap/timeline.h"

/* Bytes. A height is what a tooth rose from the fall before it. The last rise, from the last fall
 * until the moment, is no tooth of these. */
struct teeth {
	uint32_t count;
	uint64_t highest, median; /* of the heights */
	uint64_t early, late; /* median heights of their first and second half */
	uint64_t middle,
	    last; /* live bytes at the lowest of the second half, and at the last fall */
};

/* Find the teeth until moment_ns. A fall of less than a sixteenth of the top is none. */
void teeth_find(const struct timeline *t, uint64_t moment_ns, struct teeth *out);

#endif
