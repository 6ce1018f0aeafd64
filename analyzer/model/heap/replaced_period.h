/*
 * replaced_period.h - what is known of the time that a checkpoint took the place of: sums for each
 * period, and of the blocks those that outlived it. The course of the whole process is put right by
 * the sums; that of a site cannot be, and who judges by it asks replaced_until_ns(); unless
 * replaced_kept() says that so little was exchanged in all that the site's survivors are its
 * course.
 */
#ifndef ANALYZER_MODEL_PAST_H
#define ANALYZER_MODEL_PAST_H

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

/* EV_CHECKPOINT, when what outlived it was applied: `live` bytes of blocks and `mapped` of mappings
 * live by the events so far, which acquired `total` in all. */
void replaced_note(struct replaced *p, struct timeline *t, const struct event *e, uint64_t live,
    uint64_t mapped, uint64_t total);

/* Of what came and went before this moment nothing is known but what outlived it; 0: all is. */
uint64_t replaced_until_ns(const struct feed *feed);

/* Who held something from before this moment on, and gave back what was made with it, is not known:
 * the begin of the last period. 0: there is none. */
uint64_t replaced_work_ns(const struct replaced *p);

/* Of a site that began at `from`: those of its blocks that outlived the checkpoint, of so many
 * bytes, are nearly all that it ever kept: at several moments of before much less than that lived
 * which did not outlive it. */
bool replaced_kept(const struct replaced *p, uint64_t from_ns, uint64_t bytes);

#endif
