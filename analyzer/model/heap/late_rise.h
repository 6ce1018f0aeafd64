/*
 * late_rise.h - did memory rise in one short stretch at the end, after a long steady state? Then
 * the rise belongs to one request; memory that rises all along belongs to every request.
 */
#ifndef ANALYZER_MODEL_LATE_RISE_H
#define ANALYZER_MODEL_LATE_RISE_H

#include "model/model.h"

struct late_rise {
	uint64_t start_ns, steady_ns; /* when it began, how long it was steady before */
	uint64_t base_bytes, peak_trend_bytes;
	/* During the steady state as much was acquired as lived: the process was working, not
	 * waiting to begin. */
	bool worked;
};

/* False when there is no such rise. `first_ns`: the first event, before which nothing was steady.
 * `moment_ns`: the end of the rise. */
bool late_rise_find(
    const struct timeline *t, uint64_t first_ns, uint64_t moment_ns, struct late_rise *out);

#endif
