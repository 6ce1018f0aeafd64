/*
 * rooms.h - what is left now of the limit that the host's memory, or a device's, reaches first.
 */
#ifndef ANALYZER_VERDICT_ROOMS_H
#define ANALYZER_VERDICT_ROOMS_H

#include <stdbool.h>

#include "model/space/space.h"
#include "verdict/failure/failure.h"

/* False: no limit is known, or none was measured lately; *out is untouched. */
bool rooms_of_host(const struct model *m, struct room *out);
/* The same for a device; `cuda` is its space. Sets .bytes and .left. */
bool rooms_of_device(const struct space *cuda, struct room *out);

#endif
