/*
 * late_rise.h - did memory rise in one short stretch at the end, after a long steady state? Then
 * the rise belongs to one request; a rise all along belongs to every request.
 */
#ifndef ANALYZER_MODEL_LATE_RISE_H
#define ANALYZER_MODEL_LATE_RISE_H

#include "model/model.h"

struct late_rise {
	uint64_t start_ns, steady_ns; /* its begin; length of the steady state before */
	uint64_t base_bytes, peak_trend_bytes;
	/* During the steady state, at least the live bytes were acquired: the process worked, and
	 * did not wait to begin. */
	bool worked;
};

/* Find the rise. False: there is none. `first_ns`: the first event, before which nothing was
 * steady. `moment_ns`: the end of the rise. */
bool late_rise_find(
    const struct timeline *t, uint64_t first_ns, uint64_t moment_ns, struct late_rise *out);

#endif
