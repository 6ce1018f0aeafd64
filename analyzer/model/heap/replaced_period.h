/*
 * replaced_period.h - the time whose events a checkpoint replaced: sums for each period, and the
 * blocks that outlived it. The sums correct the process's timeline. A stack's history cannot be
 * corrected: code that judges by it asks replaced_until_ns(), and replaced_kept() whether so few
 * blocks were exchanged that the survivors are the history.
 */
#ifndef ANALYZER_MODEL_REPLACED_PERIOD_H
#define ANALYZER_MODEL_REPLACED_PERIOD_H

#include "model/feed.h"
#include "model/heap/timeline.h"

struct replaced_period {
	uint64_t begin_ns, end_ns;
	uint64_t acquired, acquired_bytes, released, released_bytes; /* blocks; bytes: estimates */
	uint64_t most_bytes; /* the peak of live bytes */
	/* Live at its end, and freed before the checkpoint. */
	uint64_t gone_bytes;
};

struct replaced {
	/* the oldest; the sums are of all */
	struct replaced_period periods[TRACE_CHECKPOINT_PERIODS];
	uint32_t count;
	uint64_t trace_bytes, left_out;
	uint64_t acquired, acquired_bytes, released, released_bytes;
	uint64_t most_bytes; /* blocks and mappings, peak */
	uint64_t unseen_bytes; /* part of acquired_bytes that no event has */
	uint64_t seen_bytes; /* bytes that events have, until the end of the latest period */
};

/* Apply EV_CHECKPOINT, after the events that outlived it. By the events so far: `live` bytes of
 * blocks, `mapped` bytes of mappings, `total` bytes acquired. */
void replaced_note(struct replaced *p, struct timeline *t, const struct event *e, uint64_t live,
    uint64_t mapped, uint64_t total);

/* Return the moment before which only blocks that outlived the checkpoint are known; 0: none. */
uint64_t replaced_until_ns(const struct feed *feed);

/* Return the last period's begin; older blocks' release by their holder is unknown. 0: no
 * period. */
uint64_t replaced_work_ns(const struct replaced *p);

/* True when the surviving `bytes` of a stack that began at `from_ns` are nearly all that it ever
 * kept: at several earlier moments, few other bytes lived that did not outlive the checkpoint. */
bool replaced_kept(const struct replaced *p, uint64_t from_ns, uint64_t bytes);

#endif
