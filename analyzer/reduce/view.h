/*
 * view.h - a record without what was left out, as a feed: what was measured is told as if that had
 * never been acquired, and so are the limits, so that the refused request is still one too many by
 * as much as it was.
 *
 * A level is less by what of its kind was left out and lived then; the limit by what of it lived at
 * the moment of the verdict. Of resident memory it is the part of those bytes that was resident of
 * all that lived then, as the verdict itself reckons.
 *
 * A record that is `centred` has its limit of address space between what is left needs and what was
 * refused: what an allocator keeps to itself is no more what it was, and must not decide.
 */
#ifndef ANALYZER_REDUCE_VIEW_H
#define ANALYZER_REDUCE_VIEW_H

#include "reduce/record.h"
#include "verdict/failure/supervised.h"

struct amounts {
	int64_t out[RECORD_CLASSES]; /* bytes that live but were left out */
	uint64_t live; /* anonymous bytes of the host, with these */
};

struct view {
	const struct record *record;
	const uint8_t *kept; /* by unit */
	VEC(uint32_t) order; /* the events that are left */
	VEC(struct event)
	rich; /* by order of those that have levels: with the levels as they are told */
	VEC(struct event) outside; /* those of the supervisor's that are left */
	struct arena arena;
	struct amounts moment; /* what was left out and lived then */
	uint64_t room; /* under the limit, at the refusal */
	uint64_t peak_live, moment_live; /* of what is left, on the host */
	struct record_info infos[RECORD_INFOS]; /* the limits, as they are told */
	uint32_t info_count;
	/* Reading. */
	size_t at, rich_at, outside_at;
	uint64_t serial;
	uint32_t *serials; /* by event: of the ALLOCs */
	/* By event, of the ALLOCs: the one that stands for it, where it is a realloc that was left
	 * out; and where that one lies then, 0: where it did. Nobody else is there. */
	uint32_t *heirs;
	uint64_t *callsites, next_callsite;
	uint8_t *live; /* by event: of the ALLOCs */
	struct block block, old;
	struct trace_facts facts;
};

/* `kept` is borrowed. 0 or -ENOMEM. */
int view_make(const struct record *record, const uint8_t *kept, struct view *out);
void view_fini(struct view *v);

struct feed view_feed(struct view *v);
/* The record becomes what the view shows, and the view empty. 0 or -ENOMEM. */
int view_settle(struct view *v, struct record *record);

/* The supervisor's; only where the record has one. */
struct feed view_outside(struct view *v);

#endif
