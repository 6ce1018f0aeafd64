/*
 * host_failure.h - requests that the host refused, in bursts, and the outcome of each burst: the
 * memory was granted later, the program did without, or it ended. Failures of devices are in
 * space_failure.c.
 */
#ifndef ANALYZER_MODEL_HOST_FAILURE_H
#define ANALYZER_MODEL_HOST_FAILURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/tuned.h"

TUNED(unsigned, HOST_FAILURE_RETRY, 4u,
    "a second try follows at once, behind its error's own few blocks");

struct event;
struct model;

/* A burst of refused requests: the first one, and its outcome. */
struct failure {
	uint64_t time_ns, size; /* size: the whole block, also of a realloc */
	uint64_t largest; /* refused in the burst */
	uint64_t least; /* smallest size that was refused after the block was halved */
	uint32_t stack, thread, api;
	int32_t result; /* errno */
	uint64_t count; /* refused requests in the burst */
	uint64_t granted; /* acquisitions at that stack before */
	uint64_t own; /* acquisitions of that thread since the latest refusal */
	uint64_t after; /* acquisitions before the latest refusal */
	uint64_t live_bytes, live_map_bytes;
	/* virtual sizes, from the events */
	uint64_t stack_bytes, shared_bytes, file_bytes, allocator_bytes;
	uint64_t acquired_before, serial; /* bytes and blocks of the whole process before */
	/* Later acquisitions show whether the process recovered. After a checkpoint replaced the
	 * moment, its later periods and the events after it do. Bytes: until the replaced period's
	 * end; in the periods; and live at that end, at least. */
	uint64_t until_bytes, periods_bytes, until_live;
	bool until_replaced;
	/* Bytes of that stack and thread: released since, before any new block there; of new
	 * blocks, live now, and their peak. */
	uint64_t released, rebuilt, rebuilt_most;
	bool rebuilt_fallen,
	    rebuilt_over; /* over: not begun at once, or begun again after it fell */
	/* Recovered: the process lived on. Retried: the thread got the memory after all, or found
	 * another way; otherwise its purpose was given up, and the failure was survived. Settled:
	 * the outcome is known. */
	bool recovered, retried, settled;
};
#define MODEL_FAILURES 32u /* kept with their facts; further ones are only counted */

/* Filled by host_failure.c, const for all others. */
struct refusals {
	struct failure list[MODEL_FAILURES]; /* bursts; the last entry is always the latest */
	size_t count; /* of the list */
	uint64_t bursts, requests; /* all of them */
	uint64_t epoch; /* of the latest failure; 0: none */
};

/* True while the outcome of the newest burst is unknown. */
static inline bool host_failure_is_open(const struct refusals *r)
{
	return r->count && !(r->list[r->count - 1].recovered && r->list[r->count - 1].settled);
}

/* Return the latest burst; NULL when its memory was granted later. A burst that the process
 * survived counts: it did not get the memory. */
const struct failure *model_failure(const struct model *m);
/* Settle the latest burst, which was survived: it is no failure of a limit, since the program got
 * the memory in another way. */
void model_did_without(struct model *m);

/* The functions below are for model.c. */

/* Note a refused request. Pre: the event's levels are in the model. */
void host_failure_refused(struct model *m, const struct event *e);

/* Call after each acquisition while a burst is open. A burst is over when any thread was granted as
 * much at the same stack, or less at once; or when the process went on without it. */
void host_failure_acquired(struct model *m, const struct event *e);
/* Call after `bytes` of a stack were released while a burst is open. */
void host_failure_released(struct model *m, const struct event *e, uint32_t stack, uint64_t bytes);

/* Apply EV_CHECKPOINT: a period's sums show live bytes at the refusal, and later acquisitions. */
void host_failure_period(struct model *m, const struct event *e);

/* Call after the last event. */
void host_failure_end(struct model *m);

/* True when `size` is half of `whole`, within rounding. */
bool host_failure_is_half(uint64_t size, uint64_t whole);

#endif
