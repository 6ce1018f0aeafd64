/*
 * counterfactual.h - replay the trace through the model without each candidate cause, all in one
 * pass and each apart from the others: how much would have lived?
 */
#ifndef ANALYZER_VERDICT_COUNTERFACTUAL_H
#define ANALYZER_VERDICT_COUNTERFACTUAL_H

#include "model/heap/peak_trend.h"
#include "verdict/result.h"

struct replay_result {
	uint64_t live, live_start; /* recorded: at the moment, and when the growth began */
	uint64_t slack, slack_start; /* that the allocator held beside these */
	uint64_t without, without_start; /* live bytes without the cause */
	/* The peak without the cause since the growth began, at marks spread over the second half
	 * of that time. */
	uint64_t without_peaks[TREND_MARKS];
};

/* Fill out[i] for candidates[i], in the space that `callsites` are of (its name; NULL: the host's).
 * The growth that each is to explain began at its finding's start_ns. 0; negative errno with err.
 */
int counterfactual_replay(struct feed feed, const char *space, const struct callsites *callsites,
    const struct candidate *candidates, size_t count, struct replay_result *out, struct err *err);

#endif
