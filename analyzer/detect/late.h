/*
 * late.h - blocks that a line of a device made in one go, after work had stopped for them: a model
 * that is loaded beside work, or one request's. Nothing is finished since, so they are no leak.
 */
#ifndef ANALYZER_DETECT_LATE_H
#define ANALYZER_DETECT_LATE_H

#include "detect/detect.h"

/* A device's work, by the blocks that it released until the moment. */
struct late_work {
	uint64_t first_ns, last_ns; /* acquisition of the first and of the newest of these blocks */
	bool stopped; /* what came after the newest one was not released as work was */
};

struct late {
	uint64_t bytes, blocks, since_ns;
	bool again; /* the line made other blocks before any work */
};

/* Read the work once for all call sites. On the host it never stops. */
struct late_work late_work_of(const struct scene *scene);

/* Find a call site's blocks that came after the work. False: there are none. */
bool late_at(
    const struct scene *scene, const struct late_work *work, uint32_t callsite, struct late *out);

#endif
