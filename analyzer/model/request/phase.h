/*
 * phase.h - what a server was at, one after the other: loading, warming up, its first request,
 * serving. As the program marks it; else from what its memory did, and from when its requests came:
 *
 *  - while it loads, little is given back;
 *  - what is worked at then, before any request came, is its warm-up;
 *  - while it serves, what is taken comes back, again and again.
 *
 * Times are exact to one period of the timeline where nothing was marked.
 */
#ifndef ANALYZER_MODEL_PHASE_H
#define ANALYZER_MODEL_PHASE_H

#include "model/heap/timeline.h"
#include "model/request/request.h"

#define PHASES_MAX 8u

struct phase {
	const char
	    *name; /* "loading", "warm-up", "first-request", "serving", or the program's own */
	uint64_t start_ns, end_ns;
	uint64_t live_bytes; /* at its end */
	bool marked;
};

struct phases {
	struct phase list[PHASES_MAX]; /* by start */
	uint32_t count;
};

/* Of a process whose first event was at first_ns, until the moment. `r` may be NULL. None where
 * nothing tells loading from work. */
void phases_read(const struct timeline *t, uint64_t first_ns, uint64_t moment_ns,
    const struct requests *r, struct phases *out);

#endif
