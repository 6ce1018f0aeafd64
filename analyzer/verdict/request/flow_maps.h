/*
 * flow_maps.h - the program's own mappings and shared memory, as blocks that a thread or task holds
 * while it works: a request's segment of shared memory is its working set as a block of malloc's
 * is. Left out are mappings without a call site, of plain files, stacks, malloc and the
 * interpreter's arenas.
 */
#ifndef ANALYZER_VERDICT_FLOW_MAPS_H
#define ANALYZER_VERDICT_FLOW_MAPS_H

#include "model/callsite/callsite.h"
#include "model/request/request.h"
#include "util/ranges.h"
#include "util/vec.h"

struct flow_maps {
	struct ranges mapped; /* `serial` is the block's index */
	VEC(struct block) blocks; /* size 0: unmapped */
	VEC(struct range) undo; /* pieces of the latest unmapping, for EV_UNUNMAP */
	uint64_t undo_address;
	int error; /* of a cut */
	struct requests *requests; /* the caller's, as callsites */
	const struct callsites *callsites;
	uint64_t time_ns; /* of the latest event */
};

/* Initialise *out; `requests` gets the mappings as blocks. Mark the arenas of `callsites` before.
 */
void flow_maps_init(
    struct flow_maps *out, struct requests *requests, const struct callsites *callsites);
void flow_maps_fini(struct flow_maps *f);

/* Follow EV_MAP, EV_UNMAP and EV_UNUNMAP; other events are ignored. 0 or -ENOMEM. */
int flow_maps_apply(struct flow_maps *f, const struct event *e);
/* Call `fn` with each mapping that is there now. 0, or the result of `fn`. */
int flow_maps_each(
    const struct flow_maps *f, int (*fn)(void *arg, const struct block *b), void *arg);

#endif
