/*
 * bfc.h - finds arenas like TensorFlow's ("best fit with coalescing", also in ONNX Runtime) in a
 * recording. Such an arena allocates regions and cuts unrecorded chunks out of them. Right after
 * each region, in the same call, it allocates a table with eight bytes for every 256 of the region:
 * that identifies it, even in a library without symbols.
 */
#ifndef ANALYZER_VERDICT_BFC_H
#define ANALYZER_VERDICT_BFC_H

#include <stdbool.h>

#include "model/feed.h"
#include "util/vec.h"

struct bfc_region {
	uint64_t address, size;
	uint64_t taken, freed; /* both count from 1; freed 0: never */
	uint32_t stack;
	const char *by; /* the function that the arena called for the region */
	const char *table_by; /* and for its table */
};

struct bfc {
	VEC(struct bfc_region)
	regions; /* of one pair of calls, in order of allocation */
	uint64_t most; /* peak bytes */
	/* There may be several arenas: one was freed before another grew, or doubling sizes started
	 * anew. Then `most` is not of a single arena. */
	bool several;
};

/* Read the feed for arenas in host memory. Always call bfc_fini(). 0; negative errno with err. */
int bfc_read(const struct feed *feed, struct bfc *out, struct err *err);
void bfc_fini(struct bfc *bfc);

#endif
