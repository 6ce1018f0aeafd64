/*
 * view.h - a record without the units that are left out, as a feed. Measurements and limits are
 * lowered as if those units had never been acquired, so that the refused request exceeds the limit
 * by as much as before.
 *
 * A level is lowered by the live bytes of its kind that are left out, the limit by those at the
 * verdict's moment. Resident levels are lowered by the resident share of those bytes, assumed to be
 * that of all live bytes, as in the verdict.
 *
 * In a `centred` record the limit of address space lies midway between the remaining need and the
 * refused request: an allocator's overhead has changed, and must not decide.
 */
#ifndef ANALYZER_REDUCE_VIEW_H
#define ANALYZER_REDUCE_VIEW_H

#include "reduce/record.h"
#include "verdict/failure/supervised.h"

struct amounts {
	int64_t out[RECORD_CLASSES]; /* live bytes that are left out */
	uint64_t live; /* anonymous bytes of the host, including those */
};

struct view {
	const struct record *record;
	const uint8_t *kept; /* by unit */
	VEC(uint32_t) order; /* indexes of the kept events */
	/* The kept events with levels, in order, with the lowered levels. */
	VEC(struct event) rich;
	VEC(struct event) outside; /* the supervisor's kept events */
	struct arena arena;
	struct amounts moment; /* at the verdict's moment */
	uint64_t room; /* left of the limit at the refusal */
	uint64_t peak_live, moment_live; /* kept bytes of the host */
	struct record_info infos[RECORD_INFOS]; /* the lowered limits */
	uint32_t info_count;
	/* Position of the reader. */
	size_t at, rich_at, outside_at;
	uint64_t serial;
	uint32_t *serials; /* by event: serials of the ALLOCs */
	/* By ALLOC event: the ALLOC that stands for it, if it is a realloc that was left out; and
	 * that one's new address, which no other block has, or 0: the recorded one. */
	uint32_t *heirs;
	uint64_t *callsites, next_callsite;
	uint8_t *live; /* by event: whether the ALLOC's block lives */
	struct block block, old;
	struct trace_facts facts;
};

/* Make the view. `kept` is borrowed. 0 or -ENOMEM. */
int view_make(const struct record *record, const uint8_t *kept, struct view *out);
void view_fini(struct view *v);

struct feed view_feed(struct view *v);
/* Turn the record into what the view shows; the view becomes empty. 0 or -ENOMEM. */
int view_settle(struct view *v, struct record *record);

/* Return the supervisor's feed; only if the record has one. */
struct feed view_outside(struct view *v);

#endif
