/*
 * counterfactual.h - replays the trace through the model without each candidate cause, all in one
 * pass and independently: how much would have lived?
 */
#ifndef ANALYZER_VERDICT_COUNTERFACTUAL_H
#define ANALYZER_VERDICT_COUNTERFACTUAL_H

#include "model/heap/peak_trend.h"
#include "verdict/result.h"

struct replay_result {
	uint64_t live, live_start; /* recorded: at the moment, and at the begin of the growth */
	uint64_t slack, slack_start; /* held by the allocator beside these */
	uint64_t without, without_start; /* live bytes without the cause */
	/* The peak without the cause since the growth began, at marks over that time's second
	 * half. */
	uint64_t without_peaks[TREND_MARKS];
};

/* Fill out[i] for candidates[i], in the scene's space, of its call sites. The growth to explain
 * began at each finding's start_ns. 0; negative errno with err. */
int counterfactual_replay(struct feed feed, const struct scene *scene,
    const struct candidate *candidates, size_t count, struct replay_result *out, struct err *err);

#endif
