/*
 * history.h - reads the facts of size, keep, feeds and index_of out of the steps of places.
 */
#ifndef ANALYZER_MODEL_HISTORY_H
#define ANALYZER_MODEL_HISTORY_H

#include "model/callsite/callsite.h"

/* A site of a place, as it was at the moment. */
struct member {
	uint32_t callsite;
	const struct stack_stats *at;
};

/* Fills place->size from the place's steps and its sites; `padding` as of struct model. */
void history_sizes(
    struct callsite *callsite, const struct member *members, size_t count, uint64_t padding);

/* Everything else, of all places. */
void history_read(struct callsites *p, const struct timeline *timeline);

#endif
