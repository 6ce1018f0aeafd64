/*
 * phase.h - the phases of a server: loading, warm-up, first request, serving. The program's marks
 * decide; without marks, its memory and the times of its requests do:
 *
 * - while it loads, it releases little;
 * - work before the first request is warm-up;
 * - while it serves, it releases again and again what it acquires.
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
	    *name; /* "loading", "warm-up", "first-request", "serving", or the program's name */
	uint64_t start_ns, end_ns;
	uint64_t live_bytes; /* at the phase's end */
	bool marked;
};

struct phases {
	struct phase list[PHASES_MAX]; /* by start */
	uint32_t count;
};

/* Read the phases of a process, from its first event at first_ns until the moment. `r` may be NULL.
 * `attached`: the process had begun before its first event, so only its marks tell of phases.
 * The list is empty when nothing separates loading from work. */
void phases_read(const struct timeline *t, uint64_t first_ns, uint64_t moment_ns,
    const struct requests *r, bool attached, struct phases *out);

#endif
