/*
 * relations.h - which call site's blocks follow from what another one keeps.
 */
#ifndef ANALYZER_MODEL_RELATIONS_H
#define ANALYZER_MODEL_RELATIONS_H

#include <stdint.h>

/* Numbers of other call sites, CALLSITE_NONE where there is none. Filled by relations.c, const for
 * all others. */
struct relations {
	/* The one whose blocks grow in proportion to what this one keeps, and by how many bytes for
	 * each byte kept. */
	uint32_t feeds;
	double feed_slope;
	/* The one that makes, time and again, a list of all that this one keeps: it is gone through
	 * at every step, so it is no finished work. */
	uint32_t listed_by;
	/* The one that holds what this one's kept blocks are copies of: each of them is as large as
	 * all that was held there at the time, or so many came to be with each block that was added
	 * there. */
	uint32_t copies_of;
	/* For a growing call site: it is the index (array, table) of what that one keeps. One that
	 * makes both is its own. */
	uint32_t index_of;
};

struct callsites;
/* Fills .relations of all, once their other parts are known. */
void relations_read(struct callsites *p);

#endif
