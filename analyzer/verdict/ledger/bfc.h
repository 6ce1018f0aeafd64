/*
 * bfc.h - arenas of TensorFlow's kind ("best fit with coalescing"), which ONNX Runtime has, too, in
 * a recording. Such an arena takes regions and cuts chunks out of them. Beside each region, in the
 * same call and just after it, it takes a table with eight bytes for every 256 of the region: by
 * that they are known, whatever names are left in the library. Chunks are not recorded.
 */
#ifndef ANALYZER_VERDICT_BFC_H
#define ANALYZER_VERDICT_BFC_H

#include <stdbool.h>

#include "model/feed.h"
#include "util/vec.h"

struct bfc_region {
	uint64_t address, size;
	uint64_t taken, freed; /* counts both, from 1; freed 0: never */
	uint32_t stack;
	const char *by,
	    *table_by; /* what the arena's own function called for it, and for the table */
};

struct bfc {
	VEC(struct bfc_region)
	regions; /* of one pair of calls; in the order in which they were taken */
	uint64_t most; /* bytes, at most at once */
	/* There may be several arenas: one was given back before another grew, or regions that
	 * double begin anew. What all hold is then no one's. */
	bool several;
};

/* Of the host's memory. Reads the whole feed. 0; negative errno, err filled. bfc_fini() in any
 * case. */
int bfc_read(const struct feed *feed, struct bfc *out, struct err *err);
void bfc_fini(struct bfc *bfc);

#endif
