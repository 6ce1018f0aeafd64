/*
 * late_rise.h - did memory rise in one short stretch at the end, after a long steady state? Then
 * what rose belongs to one request; where it rose all along, to every one.
 */
#ifndef ANALYZER_MODEL_BURST_H
#define ANALYZER_MODEL_BURST_H

#include "model/model.h"

struct late_rise {
	uint64_t start_ns, steady_ns; /* when it began, how long it was steady before */
	uint64_t base_bytes, peak_trend_bytes;
	/* While it was steady as much was acquired and released as lived: it was at work, and not
	 * about to begin. */
	bool worked;
};

/* False when there is none. `first_ns`: of the first event, before which nothing was steady;
 * `moment_ns`: the end of the rise. */
bool late_rise_find(
    const struct timeline *t, uint64_t first_ns, uint64_t moment_ns, struct late_rise *out);

#endif
