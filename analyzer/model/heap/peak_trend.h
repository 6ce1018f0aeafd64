/*
 * peak_trend.h - how the high-water mark rose with the work done, in bytes acquired: time says
 * little if a program takes seconds to start and a fraction of one to fail. A bounded number of
 * marks; constant work for an acquisition.
 */
#ifndef ANALYZER_MODEL_PEAK_TREND_H
#define ANALYZER_MODEL_PEAK_TREND_H

#include <stdint.h>

#include "util/tuned.h"

#define PEAK_TREND_MARKS 64u
TUNED(unsigned, PEAK_TREND_MARKS_MIN, 4u, "with fewer marks, none is of the middle of the work");

struct peak_trend {
	uint64_t stride; /* bytes acquired between two marks; 0: none yet */
	uint32_t used;
	uint64_t marks[PEAK_TREND_MARKS]; /* the high-water mark after that many bytes */
};

/* Add an acquisition: bytes acquired so far, and the high-water mark. */
void peak_trend_note(struct peak_trend *r, uint64_t acquired, uint64_t peak);

/* Return what a trend added over the whole run, whose high-water mark rose by `rise`. `marks`: the
 * high-water mark at equal parts of the run's second half, its begin included. One jump is no
 * trend: the largest step is left out. 0 when the rest may be chance. */
#define TREND_MARKS 9u
uint64_t peak_trend_of_marks(const uint64_t marks[TREND_MARKS], uint64_t rise);
/* The same for all work so far; `peak` is the high-water mark. */
uint64_t peak_trend_added(const struct peak_trend *r, uint64_t peak);

#endif
