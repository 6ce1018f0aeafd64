/*
 * phase.h - the phases of a server: loading, warm-up, first request, serving. As the program marks
 * them; else from its memory and from when its requests came:
 *
 *  - while it loads, little is released;
 *  - work before the first request is warm-up;
 *  - while it serves, what is acquired is released again and again.
 *
 * Without marks, times are exact to one period of the timeline.
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

/* Read the phases of a process whose first event was at first_ns, until the moment. `r` may be
 * NULL. None when nothing separates loading from work. */
void phases_read(const struct timeline *t, uint64_t first_ns, uint64_t moment_ns,
    const struct requests *r, struct phases *out);

#endif
