/*
 * series.h - the sizes of a place's blocks from step to step: whether they rise, from what to what.
 */
#ifndef ANALYZER_MODEL_SERIES_H
#define ANALYZER_MODEL_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/callsite/callsite.h"

/* A shorter series says nothing. */
#define SERIES_MIN 4u

struct series {
	struct size_at at[CALLSITE_STEPS];
	uint64_t blocks[CALLSITE_STEPS]; /* of each, how many it stands for */
	size_t count;
	bool sums; /* some are of what a checkpoint tells as one */
};

/* `padding`: blocks are handed out larger than what was asked for, by less than so many bytes. */
void series_of_steps(const struct callsite *p, uint64_t padding, struct series *out);
void series_of_stack_stats(const struct stack_stats *stats, uint64_t padding, struct series *out);

/* The largest of every `width` values: a large block that comes once a turn is then not hidden by
 * the small ones around it. */
void series_coarser(struct series *s, size_t width);

/* Into p->size. */
void series_judge(const struct series *s, struct callsite *p);
/* Of what was judged: whether its values rise, by however little. */
bool series_rises(const struct callsite *p);

#endif
