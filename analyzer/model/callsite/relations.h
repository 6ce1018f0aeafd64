/* relations.h - which call site's blocks follow from another one's kept blocks. */
#ifndef ANALYZER_MODEL_RELATIONS_H
#define ANALYZER_MODEL_RELATIONS_H

#include <stdint.h>

/* Indices of other call sites; CALLSITE_NONE: none. Filled by relations.c, const for all others. */
struct relations {
	/* The call site whose blocks grow in proportion to this one's kept bytes, and its bytes for
	 * each byte kept. */
	uint32_t feeds;
	double feed_slope;
	/* The call site that repeatedly makes a list of all blocks that this one keeps: they are
	 * read at every step, so they are no finished work. */
	uint32_t listed_by;
	/* The call site that holds the original of this one's kept copies: each copy is as large as
	 * everything held there at the time, or consists of a fixed number of blocks for each block
	 * added there. */
	uint32_t copies_of;
	/* For a growing call site: it is the index (array, table) of that one's kept blocks. A call
	 * site that makes both is its own. */
	uint32_t index_of;
};

struct callsites;
/* Fill .relations of all call sites, once their other parts are known. */
void relations_read(struct callsites *p);

#endif
