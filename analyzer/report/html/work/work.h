/*
 * work.h - inside report/html/: which request each thread or task worked for, and when. Read in the
 * pass over the host's events, and asked in the one over the other spaces', too. Memory grows with
 * requests, up to WORK_REQUESTS of them.
 */
#ifndef ANALYZER_REPORT_WORK_H
#define ANALYZER_REPORT_WORK_H

#include "verdict/request/stages.h"
#include "verdict/result.h"

#define WORK_REQUESTS 200000u /* told apart; later ones are only counted */
#define WORK_STINTS 1000000u /* of all workers; work beyond them is no request's */
#define WORK_NONE UINT32_MAX

struct work_request {
	const char *name; /* NULL: none */
	uint32_t thread;
	uint64_t begin_ns, end_ns; /* end 0: unfinished */
	bool known, refused; /* known: false for a number that was left out */
};

/* While a worker worked for one request. */
struct work_stint {
	uint64_t from_ns, until_ns; /* until 0: to the end */
	uint32_t request;
};
struct work_worker {
	VEC(struct work_stint) stints; /* in time order */
	uint32_t request; /* WORK_NONE: none now */
};

/* Filled by work.c, const for all others. */
struct work {
	struct stages stages; /* for their entry frames */
	struct requests *requests; /* NULL: the program has none */
	struct framework_frames *frames; /* NULL: no stack has a stage */
	VEC(struct work_request) list; /* by begin; the index is the request's number */
	VEC(struct work_worker) workers;
	struct map by_worker; /* to 1 + index */
	uint64_t stints, last_key;
	uint32_t last_worker;
	bool failed; /* no memory */
};

/* Begin before the first event. `feed` must outlive *w. 0 or -ENOMEM. */
int work_init(struct work *w, const struct verdict_result *r, const struct feed *feed);
void work_fini(struct work *w); /* accepts a zeroed struct */
/* Note whose work an event is. 0 or -ENOMEM. */
int work_apply(struct work *w, const struct event *e);
/* Return the number of the request for which the worker worked at that time; WORK_NONE: none. */
uint32_t work_request_at(struct work *w, uint32_t thread, uint32_t task, uint64_t time_ns);
/* Return the stage of a stack; ROLE_NONE: it has none. */
enum role work_stage(const struct work *w, uint32_t stack);

#endif
