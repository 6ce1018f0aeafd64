/*
 * late.h - blocks that a line of a device made in one go, after work had stopped for them: a model
 * that is loaded beside work, or one request's. Nothing is finished since, so they are no leak.
 */
#ifndef ANALYZER_DETECT_LATE_H
#define ANALYZER_DETECT_LATE_H

#include "detect/detect.h"

struct late {
	uint64_t bytes, blocks, since_ns;
	bool again; /* the line made other blocks before any work */
};

/* Find such blocks of a call site. False: there are none. Devices only. */
bool late_at(const struct scene *scene, uint32_t callsite, struct late *out);

#endif
