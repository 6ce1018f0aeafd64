/*
 * bfc.h - find arenas of TensorFlow's kind ("best fit with coalescing", also in ONNX Runtime) in a
 * recording. Such an arena takes regions and cuts chunks out of them, which are not recorded. Just
 * after each region, in the same call, it takes a table with eight bytes for every 256 of the
 * region: that gives it away, even in a library without symbols.
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
	const char *by; /* the function that the arena called for it */
	const char *table_by; /* and for its table */
};

struct bfc {
	VEC(struct bfc_region)
	regions; /* of one pair of calls; in the order in which they were taken */
	uint64_t most; /* bytes, at most at once */
	/* There may be several arenas: one was given back before another grew, or sizes that double
	 * began anew. Then `most` is not of one arena. */
	bool several;
};

/* Read the whole feed, for arenas in the host's memory. Call bfc_fini() whatever this returns. 0;
 * negative errno with err. */
int bfc_read(const struct feed *feed, struct bfc *out, struct err *err);
void bfc_fini(struct bfc *bfc);

#endif
