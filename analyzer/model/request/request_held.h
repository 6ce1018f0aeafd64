/*
 * request_held.h - what each request in flight at a moment held, by call site: working sets that
 * existed at the same time. A request is marked or shown by its entry frame; without either, it is
 * what a thread or task acquired since it last held nothing.
 */
#ifndef ANALYZER_MODEL_REQUEST_HELD_H
#define ANALYZER_MODEL_REQUEST_HELD_H

#include "model/callsite/callsite.h"
#include "model/request/request.h"
#include "util/tuned.h"

TUNED(unsigned, REQUESTS_ALIKE, 8u, "requests of one kind hold an eighth of the largest at least");

/* One call site. Requests that hold at least an eighth of the largest count as alike. */
struct held_callsite {
	uint64_t bytes, blocks; /* of requests in flight */
	uint64_t largest; /* of one request */
	uint32_t requests, alike;
	uint32_t in_one_go; /* of requests: made these blocks without a release in between */
};

struct held_request {
	const struct lane *lane; /* the lane that holds most of it */
	const struct request_run *request; /* NULL: only its lane is known */
	uint64_t bytes; /* at call sites where other requests held alike */
	uint64_t all; /* everywhere */
	uint64_t since_ns;
	uint32_t index; /* the reader's */
};

/* What one request held at one call site. */
struct held_part {
	uint32_t request, callsite; /* request: index in list */
	uint64_t bytes, blocks;
	uint64_t first_ns; /* of the first block */
};

struct requests_held {
	const struct requests *of;
	struct held_callsite *callsites; /* by call site */
	struct held_request *list; /* most bytes first */
	uint32_t count;
	struct held_part *parts;
	size_t part_count;
	/* Of call sites where several requests held alike. */
	uint64_t sum, largest;
	uint32_t alike;
	/* Finished requests or lanes of that size, and the share of them that left much behind. */
	uint64_t finished;
	double left;
	uint64_t life_ns; /* mean time that the finished ones took; 0: unknown */
};

/* Fill *out. `each` calls its function for all blocks that live at the moment. `m` is the host's
 * model; NULL for another space, where releases at a stack are not read. r, m and callsites stay
 * the caller's. 0, -ENOMEM, or the result of `each`. */
typedef int (*held_each_fn)(void *self, int (*fn)(void *arg, const struct block *b), void *arg);
int requests_held_read(const struct requests *r, const struct model *m,
    const struct callsites *callsites, held_each_fn each, void *self, struct requests_held *out);
/* Return the bytes that the first `most` requests of the list hold at a call site. */
uint64_t requests_held_first(const struct requests_held *h, uint32_t callsite, uint64_t most);
/* Return "requests", "tasks" or "threads": what most of them are. */
const char *requests_held_unit(const struct requests_held *h);
void requests_held_fini(struct requests_held *h);

#endif
