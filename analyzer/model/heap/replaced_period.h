/*
 * replaced_period.h - the time whose events a checkpoint replaced: sums for each period, and of the
 * blocks only those that outlived it. The sums correct the timeline of the process. The history of
 * a stack cannot be corrected; code that judges by it asks replaced_until_ns(), and replaced_kept()
 * whether so little was exchanged that the survivors are the history.
 */
#ifndef ANALYZER_MODEL_REPLACED_PERIOD_H
#define ANALYZER_MODEL_REPLACED_PERIOD_H

#include "model/feed.h"
#include "model/heap/timeline.h"

struct replaced_period {
	uint64_t begin_ns, end_ns;
	uint64_t acquired, acquired_bytes, released, released_bytes; /* blocks; bytes: estimates */
	uint64_t most_bytes; /* that lived at a time */
	/* Lived at its end, and went before the checkpoint: what was exchanged since. */
	uint64_t gone_bytes;
};

struct replaced {
	struct replaced_period periods[TRACE_CHECKPOINT_PERIODS]; /* the oldest; sums are of all */
	uint32_t count;
	uint64_t trace_bytes, left_out;
	uint64_t acquired, acquired_bytes, released, released_bytes;
	uint64_t most_bytes; /* blocks and mappings, at most */
	uint64_t unseen_bytes; /* of acquired_bytes, what no event tells of */
	uint64_t seen_bytes; /* that events told of, until the end of the latest period */
};

/* EV_CHECKPOINT, after the events that outlived it. `live`: bytes of blocks, `mapped`: of mappings
 * that live by the events so far; `total`: bytes acquired by these events. */
void replaced_note(struct replaced *p, struct timeline *t, const struct event *e, uint64_t live,
    uint64_t mapped, uint64_t total);

/* Before this moment only what outlived the checkpoint is known; 0: all events are. */
uint64_t replaced_until_ns(const struct feed *feed);

/* The begin of the last period: before it, it is not known whether a holder gave back what it made.
 * 0: there is no period. */
uint64_t replaced_work_ns(const struct replaced *p);

/* True when the `bytes` that survive of a stack that began at `from_ns` are nearly all that it ever
 * kept: at several earlier moments much less lived that did not outlive the checkpoint. */
bool replaced_kept(const struct replaced *p, uint64_t from_ns, uint64_t bytes);

#endif
