/*
 * host.h - inside replay/: a replay of the host's requests, shared by host.c, beside.c and
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
	struct plan_source source; /* the three above */
	struct player player;
	FILE *plan;
	const struct play_allocator *own; /* the recorded one */
	bool capped; /* this machine has too little memory, so runs are limited to less */
	bool played; /* the latest run is the one to report */
	uint32_t failing; /* the moment of the failure's levels, or PLAN_NONE */
	uint32_t killed; /* the moment of the latest run's kill */
	struct play_sample *reference; /* of the first run */
	uint64_t reference_base;
};

/* Return the limit to enforce; NONE: there is none, or the kernel enforces it. */
enum play_limit beside_kind(const struct host *h);
void beside_find_failing(struct host *h, enum play_limit kind);
/* Return the recorded bytes at the moment, as that limit counts them; 0: unknown. */
uint64_t beside_recorded(const struct host *h, uint32_t moment, enum play_limit kind);
/*
 * Find how much memory lies beside the replayed blocks, and set it in player.play, by runs of the
 * recorded allocator under the limit. The caller sets no other limit afterwards. 0; negative with
 * err.
 */
int beside_settle(struct host *h, enum play_limit kind, uint64_t limit, struct err *err);

/* Return the smallest part of the limit that the latest run left free. */
uint64_t beside_left(const struct host *h);

/* Append the latest run to out->rows. */
int outcome_take_row(struct host *h, const struct play_allocator *allocator, struct err *err);
/* Return whether the first row fails where the record does. */
bool outcome_is_same(const struct host *h);
/* Compare the resident curve of the first run with the record. */
void outcome_compare_curves(struct host *h);

int host_run(struct host *h, const struct play_allocator *allocator, int *held, struct err *err);

#endif
