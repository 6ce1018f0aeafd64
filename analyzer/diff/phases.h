/*
 * phases.h - inside diff/: the phases of both sides, aligned by their names, and the bytes of a
 * space over the time of each. So two runs of other lengths are compared at the same work.
 */
#ifndef ANALYZER_DIFF_PHASES_H
#define ANALYZER_DIFF_PHASES_H

#include "diff/compare.h"

/* Read the phases of a judged side into s->phases. */
void phases_of_side(struct side *s);
/* Align them; where no name is on both sides, the whole run is one phase of each. */
void phases_align(struct diff_sides *sides);

/* The most live bytes of a space in each point of each phase. Constant work for a change. */
struct curve_points {
	uint32_t phase, point; /* the current ones */
	uint64_t next_ns; /* when the next point begins */
	uint64_t live;
	bool begun; /* the first phase has begun */
	uint32_t points[SIDE_PHASES]; /* known of each */
	uint64_t last[SIDE_PHASES];
	uint64_t most[SIDE_PHASES][DIFF_POINTS];
};
/* NULL: no memory. */
struct curve_points *curve_points_new(void);
/* The live bytes are these from that time on, which is not before the last one. */
void curve_points_change(
    struct curve_points *c, const struct side *s, uint64_t time_ns, uint64_t live);
/* Nothing is known after that time. */
void curve_points_end(struct curve_points *c, const struct side *s, uint64_t until_ns);

/* Fill the phases of a compared space. 0 or -ENOMEM. */
int phases_compare(struct comparison *c);

#endif
