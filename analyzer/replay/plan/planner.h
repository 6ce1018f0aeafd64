/*
 * planner.h - a process' events made into a plan (plan.h): which call each was, by which thread,
 * and where levels were measured. What is not performed again is counted.
 */
#ifndef ANALYZER_REPLAY_PLANNER_H
#define ANALYZER_REPLAY_PLANNER_H

#include <stdio.h>

#include "model/feed.h"
#include "replay/plan/plan.h"
#include "replay/recorded.h"

/* One PLAN_SAMPLE. */
struct plan_moment {
	uint64_t time_ns, event; /* event: counts those of the host, from 0 */
	uint32_t recorded; /* of the recorded samples the one that was due, or PLAN_NONE */
	bool peak; /* here most of all lived */
	uint64_t live[PLAN_CLASSES]; /* bytes, by plan_class() */
	/* Of what lives and is not small, not written to as yet, when that takes as long as the
	 * first half of the recorded curve shows. */
	uint64_t young;
};

struct plan_facts {
	uint64_t events, ops;
	uint64_t peak_live, peak_event; /* until the last refusal */
	uint64_t last_event; /* of the refusal that the program did not get over, or UINT64_MAX */
	uint32_t threads;
	uint64_t pace_ns; /* a moment at least that often, while events come; 0: as they come */
	VEC(struct plan_moment) moments;
	/* Not performed: */
	uint64_t unknown_releases; /* of blocks that nobody saw acquired */
	uint64_t other_mappings, other_bytes; /* of files, shared, or malloc's own */
	uint64_t breaks; /* the program's own brk and sbrk */
	uint64_t aligned; /* with an alignment that only their address tells */
};

/* The refusal to stop at, as the model has it; or no refusal: size 0. */
struct plan_last {
	uint64_t time_ns, size;
	uint32_t stack;
};

/* Two passes over the feed. `pace_ns` as in plan_facts. Writes from the file's start on. 0, or
 * negative with err. */
int plan_make(struct feed feed, const struct recorded *recorded, const struct plan_last *last,
    uint64_t pace_ns, FILE *out, struct plan_facts *facts, struct err *err);
void plan_facts_fini(struct plan_facts *facts);

/* Which event the thread's n-th operation (from 0) came from: one more pass. 1; 0: none; negative
 * with err. *event counts as in plan_moment. */
int plan_find(struct feed feed, const struct recorded *recorded, const struct plan_last *last,
    const struct plan_facts *made, uint32_t thread, uint64_t n, struct event *out, uint64_t *event,
    struct err *err);

#endif
