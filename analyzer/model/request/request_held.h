/*
 * request_held.h - what each request in flight at a moment held, by call site: working sets that
 * lay beside each other. A request is marked or shown by its entry frame; where there is none, it
 * is what a thread or task acquired since it last held nothing.
 */
#ifndef ANALYZER_MODEL_REQUEST_HELD_H
#define ANALYZER_MODEL_REQUEST_HELD_H

#include "model/callsite/callsite.h"
#include "model/request/request.h"

/* At one call site. Those are alike that hold at least an eighth of what the largest does. */
struct held_callsite {
	uint64_t bytes, blocks; /* of requests in flight */
	uint64_t largest, largest_blocks; /* of one of them */
	uint32_t requests, alike;
};

struct held_request {
	const struct lane *lane; /* that holds most of it */
	const struct request_run *request; /* NULL: only its lane is known */
	uint64_t bytes; /* at call sites where others held alike */
	uint64_t all; /* everywhere */
	uint64_t since_ns;
	uint32_t index; /* of who read it */
};

/* What one request held at one call site. */
struct held_part {
	uint32_t request, callsite; /* index in list; call site */
	uint64_t bytes, blocks;
};

struct requests_held {
	const struct requests *of;
	struct held_callsite *callsites; /* by call site */
	struct held_request *list; /* most bytes first */
	uint32_t count;
	struct held_part *parts;
	size_t part_count;
	/* Of call sites where several held alike: */
	uint64_t sum, largest;
	uint32_t alike;
	/* Requests or lanes alike that ended before; the share of them that left much behind. */
	uint64_t finished;
	double left;
};

/* Fill *out. `each` calls its function for all blocks that live at the moment. `m`: the host's
 * model; NULL for another space, where releases at a stack are not read. r, m and callsites stay
 * the caller's. 0, -ENOMEM, or what `each` returned. */
typedef int (*held_each_fn)(void *self, int (*fn)(void *arg, const struct block *b), void *arg);
int requests_held_read(const struct requests *r, const struct model *m,
    const struct callsites *callsites, held_each_fn each, void *self, struct requests_held *out);
/* What the first `most` requests of the list hold at a call site, in bytes. */
uint64_t requests_held_first(const struct requests_held *h, uint32_t callsite, uint64_t most);
/* "requests", "tasks" or "threads": the unit of most of them. */
const char *requests_held_unit(const struct requests_held *h);
void requests_held_fini(struct requests_held *h);

#endif
