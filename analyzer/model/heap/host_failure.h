/*
 * host_failure.h - requests that the host refused, in bursts, and how the process went on after
 * each: it was granted the memory later, did without, or ended. Failures of devices are in
 * space_failure.c.
 */
#ifndef ANALYZER_MODEL_HOST_FAILURE_H
#define ANALYZER_MODEL_HOST_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct model;

/* A burst of refused requests: the first one, and its outcome. */
struct failure {
	uint64_t time_ns, size, old_size; /* size: the whole block; old_size: what a realloc had */
	uint64_t largest; /* refused in the burst */
	uint64_t least; /* of those that were halved, and refused again */
	uint32_t stack, thread, api;
	int32_t result; /* errno */
	uint64_t count; /* refused requests in the burst */
	uint64_t granted; /* acquisitions at that stack until then */
	uint64_t own; /* acquisitions of that thread since the latest of them */
	uint64_t after; /* acquisitions until the latest of them */
	uint64_t live_bytes, live_map_bytes;
	uint64_t stack_bytes, shared_bytes, file_bytes, allocator_bytes; /* virtual, as seen */
	uint64_t acquired_before, serial; /* bytes and blocks, by the whole process until then */
	/* Whether it was got over is told by what is acquired from then on. Where a checkpoint took
	 * the place of then: by its later periods, and from its end on. Bytes: until that end, in
	 * the periods, and what lived, at least. */
	uint64_t until_bytes, periods_bytes, until_live;
	bool until_replaced;
	/* Bytes of that stack and thread: what was let go since, before any more was made there; of
	 * that what lives, and the most that did. */
	uint64_t released, rebuilt, rebuilt_most;
	bool rebuilt_fallen,
	    rebuilt_over; /* over: not begun at once, or begun again after it fell */
	/* Recovered: the process lived on. Retried: the thread was granted it after all, or did it
	 * in another way; else what it was for was given up, and the failure was survived. Settled:
	 * which of these is known. */
	bool recovered, retried, settled;
	uint64_t recovered_ns;
};
#define MODEL_FAILURES 32u /* kept with their facts; all are counted */

/* Filled by host_failure.c, const for all others. */
struct refusals {
	struct failure list[MODEL_FAILURES]; /* bursts; the last entry is always the latest */
	size_t count; /* of the list */
	uint64_t bursts, requests; /* all of them */
	uint64_t epoch; /* of the latest; 0: none failed */
};

/* The newest burst; NULL: nothing failed. */
static inline struct failure *host_failure_newest(struct refusals *r)
{
	return r->count ? &r->list[r->count - 1] : NULL;
}

/* True while the outcome of the newest burst is not known. */
static inline bool host_failure_is_open(const struct refusals *r)
{
	return r->count && !(r->list[r->count - 1].recovered && r->list[r->count - 1].settled);
}

/* The latest burst; NULL when it was granted later. One that the process survived counts: it did
 * not get what it asked for. */
const struct failure *model_failure(const struct model *m);
/* The latest burst, which was survived, is no failure of a limit: the program got the memory in
 * another way. */
void model_did_without(struct model *m);

/* What follows is for model.c. */

/* A request was refused. Pre: the event's levels are in the model. */
void host_failure_refused(struct model *m, const struct event *e);

/*
 * Call after each acquisition while a burst is open. A burst is over when as much was granted at
 * the same stack, or less at once, by whatever thread; or when the process went on without it.
 */
void host_failure_acquired(struct model *m, const struct event *e);
/* Call after `bytes` of a stack were released while a burst is open. */
void host_failure_released(struct model *m, const struct event *e, uint32_t stack, uint64_t bytes);

/* EV_CHECKPOINT: the sums of a period say what lived when the request was refused, and what was
 * acquired later. */
void host_failure_period(struct model *m, const struct event *e);

/* Call after the last event. */
void host_failure_end(struct model *m);

/* True when `size` is half of `whole`, allowing for rounding. */
bool host_failure_is_half(uint64_t size, uint64_t whole);

#endif
