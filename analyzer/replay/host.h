/*
 * host.h - inside replay/: a replay of the host's requests, in the hands of host.c, beside.c and
 * outcome.c.
 */
#ifndef ANALYZER_REPLAY_HOST_H
#define ANALYZER_REPLAY_HOST_H

#include <stdio.h>

#include "replay/recorded.h"
#include "replay/replay.h"

struct host {
	const struct replay_request *request;
	const struct verdict_result *verdict;
	struct replay_result *out;
	struct feed feed;
	struct recorded recorded;
	struct plan_last last;
	struct player player;
	FILE *plan;
	const struct play_allocator *own; /* the recorded one */
	bool capped; /* all of it is more than this machine has: so much as was asked for is played
		      */
	bool played; /* the latest run is the one to report of it */
	uint32_t failing; /* moment at which the failure's levels were measured, or PLAN_NONE */
	uint32_t killed; /* moment of the latest run's kill */
	struct play_sample *reference; /* the first run's */
	uint64_t reference_base;
};

/* --- beside.c --- */

/* Which limit is to strike; NONE: there is none, or it strikes by itself. */
enum play_limit beside_kind(const struct host *h);
/* Finds h->failing. */
void beside_find_failing(struct host *h, enum play_limit kind);
/* Recorded at the moment in that measure; 0: not known. */
uint64_t beside_recorded(const struct host *h, uint32_t moment, enum play_limit kind);
/*
 * Settles what lies beside, in player.play, by runs with the recorded allocator under the limit;
 * the caller sets no other limit afterwards. 0, or negative with err.
 */
int beside_settle(struct host *h, enum play_limit kind, uint64_t limit, struct err *err);

/* The least that the latest run left of the limit. */
uint64_t beside_left(const struct host *h);

/* --- outcome.c --- */

/* The latest run as the next of out->rows. */
int outcome_take_row(struct host *h, const struct play_allocator *allocator, struct err *err);
/* Of the first row. */
bool outcome_is_same(const struct host *h);
/* Of the first run, with the record. */
void outcome_compare_curves(struct host *h);

/* --- host.c --- */

int host_run(struct host *h, const struct play_allocator *allocator, int *held, struct err *err);

#endif
