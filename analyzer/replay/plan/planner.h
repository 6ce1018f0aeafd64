/*
 * planner.h - makes a plan (plan.h) from the events of a process: the call behind each event, its
 * thread, and the moments where levels were measured. Events that cannot be repeated are counted.
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
	uint32_t recorded; /* index of the recorded sample that was due, or PLAN_NONE */
	bool peak; /* the most live bytes of all moments */
	uint64_t live[PLAN_CLASSES]; /* bytes, by plan_class() */
	/* Live bytes, without small blocks, that are not written to yet, at the pace that the
	 * first half of the recorded curve shows. */
	uint64_t young;
};

struct plan_facts {
	uint64_t events, ops;
	uint64_t peak_live, peak_event; /* until the last refusal */
	uint64_t last_event; /* the refusal that the program did not recover from, or UINT64_MAX */
	uint32_t threads;
	uint64_t pace_ns; /* the longest time between moments while events come; 0: any */
	VEC(struct plan_moment) moments;
	/* Not repeated: */
	uint64_t unknown_releases; /* of blocks whose acquisition is not recorded */
	uint64_t other_mappings, other_bytes; /* of files, shared, or malloc's own */
	uint64_t breaks; /* the program's own brk and sbrk */
	uint64_t aligned; /* with an alignment that only their address tells */
};

/* The refusal to stop at, as the model has it; size 0: there is none. */
struct plan_last {
	uint64_t time_ns, size;
	uint32_t stack;
};

/* The record that a plan is made from; borrowed. */
struct plan_source {
	struct feed feed;
	const struct recorded *recorded;
	const struct plan_last *last;
};

/* Make the plan in two passes over the feed and write it from the start of the file. `pace_ns` as
 * in plan_facts. 0, or negative with err. */
int plan_make(const struct plan_source *source, uint64_t pace_ns, FILE *out,
    struct plan_facts *facts, struct err *err);
void plan_facts_fini(struct plan_facts *facts);

/* An operation of the plan: the n-th (from 0) of a thread, and the event that it came from. */
struct plan_origin {
	uint32_t thread;
	uint64_t n;
	struct event event;
	uint64_t index; /* of the event; counts as in plan_moment */
};

/* Fill the event of `origin`, whose thread and n are set, by one more pass over the feed. 1; 0: no
 * such operation; negative with err. */
int plan_find(const struct plan_source *source, const struct plan_facts *made,
    struct plan_origin *origin, struct err *err);

#endif
