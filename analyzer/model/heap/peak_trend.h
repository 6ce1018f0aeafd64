/*
 * peak_trend.h - how the high-water mark rose with the work done, in bytes acquired: time says
 * little where a program takes seconds to start and a fraction of one to fail. A bounded number of
 * marks; constant work for an acquisition.
 */
#ifndef ANALYZER_MODEL_PEAK_TREND_H
#define ANALYZER_MODEL_PEAK_TREND_H

#include <stdint.h>

#define PEAK_TREND_MARKS 64u

struct peak_trend {
	uint64_t stride; /* bytes acquired between two marks; 0: nothing was yet */
	uint32_t used;
	uint64_t marks[PEAK_TREND_MARKS]; /* the high-water mark when so much had been acquired */
};

/* Add an acquisition: bytes acquired so far, and the high-water mark. */
void peak_trend_note(struct peak_trend *r, uint64_t acquired, uint64_t peak);

/*
 * A high-water mark at this many equal parts of the second half of a run, its beginning included:
 * what a trend added over the whole run, given by how much it rose in the first place (`rise`). One
 * jump is no trend: the largest step is left out. 0 when what is left may be chance.
 */
#define TREND_MARKS 9u
uint64_t peak_trend_of_marks(const uint64_t marks[TREND_MARKS], uint64_t rise);
/* The same of all work so far, the high-water mark being `peak`. */
uint64_t peak_trend_added(const struct peak_trend *r, uint64_t peak);

#endif
