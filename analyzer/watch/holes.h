/*
 * holes.h - room that is free and cannot be used: holes between PyTorch's blocks, in what it holds
 * of a device. Pure functions of a model.
 */
#ifndef ANALYZER_WATCH_HOLES_H
#define ANALYZER_WATCH_HOLES_H

#include "model/space/space.h"

struct holes {
	uint64_t bytes, largest; /* of all holes; of the largest */
	uint64_t usable; /* bytes of those that have room for the request */
};
/* Measure the holes of a space for a request of so many bytes. Takes time and memory by the live
 * blocks. 0 or -ENOMEM. */
int holes_measure(
    const struct model *m, const struct space *sp, uint64_t request, struct holes *out);
/* Return the part of what is free that the request cannot have, 0 to 1: `left` is what the driver
 * could still give. */
double holes_unusable(const struct holes *h, uint64_t left, uint64_t request);
/* Return the size of the largest block or mapping so far; by a sample, of those in it. */
uint64_t holes_largest_request(const struct model *m);

#endif
