/*
 * early.h - what would be said of a process that still runs, if its memory ran out now.
 *
 * Its end is missing, and with it what only an end tells: which request was refused, and whether
 * what is in use was all that came. So the process is judged as if the call site that grows most
 * were refused its next block, or its next thread where the stacks of threads grow most, and the
 * confidence counts what has not been seen: of the part of the
 * limit that is still free nobody knows yet who will fill it. Nothing here prints.
 */
#ifndef ANALYZER_WATCH_EARLY_H
#define ANALYZER_WATCH_EARLY_H

#include "trace/event.h"
#include "verdict/failure/failure.h"
#include "verdict/forecast/forecast.h"
#include "verdict/verdict.h"

/* A feed that ends at a time, with that refused request. */
struct early_feed {
	struct feed trace;
	uint64_t until_ns;
	struct event refused;
	struct event_level levels[TRACE_LEVEL_DEV_FREE]; /* of that event */
	bool over;
};

struct early {
	/* CAUSE_UNKNOWN: too little has been seen to name one. */
	enum cause cause;
	double confidence; /* 0 for CAUSE_UNKNOWN */
	uint64_t live_bytes;
	struct room room; /* what is really left of the limit */
	struct forecast forecast;
	struct verdict_result as_if; /* of the refused request: its confidence is not lowered */
	struct early_feed feed; /* that as_if reads from */
};

/* Judge the host's memory of a process as it was at that time; UINT64_MAX: the end. *out is large,
 * and refers to itself and to the feed's trace; call early_fini(). 1: no limit is known, and *out
 * needs no early_fini(); negative errno with err. */
int early_judge(struct feed trace, uint64_t until_ns, struct early *out, struct err *err);
void early_fini(struct early *e);

/* Return what is left of that confidence in a cause. `used`: the part of the limit that is in use,
 * 0 to 1. */
double early_confidence(
    enum cause cause, double confidence, double used, const struct forecast *forecast);

#endif
