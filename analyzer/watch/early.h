/*
 * early.h - a verdict before the failure: the process is judged as if the limit of the host's
 * memory had been what is in use at a moment, and the call site that grows most had been refused
 * its next block there.
 */
#ifndef ANALYZER_WATCH_EARLY_H
#define ANALYZER_WATCH_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/feed.h"

/* A trace that ends at that moment, with a refused request. The caller's memory, which outlives the
 * feed; fields are private but live_bytes. */
struct early {
	struct feed trace;
	uint64_t until_ns, live_bytes; /* live_bytes: of the host at the moment */
	struct event refused;
	struct event_level levels[2]; /* of that event: the limit is what is used */
	bool over;
};

/* Find the moment `until_ns` (UINT64_MAX: the end) of a trace; then early_feed() is to be judged by
 * verdict_of_feed(). 0; 1: no limit is known; negative errno with err. */
int early_begin(struct early *e, struct feed trace, uint64_t until_ns, struct err *err);
struct feed early_feed(struct early *e);

#endif
