/*
 * counterfactual.h - the trace replayed through the model once more, with each candidate cause
 * taken away at the same time but apart from the others: how much would have lived, and would the
 * refused request have fitted?
 */
#ifndef ANALYZER_VERDICT_COUNTERFACTUAL_H
#define ANALYZER_VERDICT_COUNTERFACTUAL_H

#include "model/heap/peak_trend.h"
#include "verdict/result.h"

struct replay_result {
	uint64_t live, live_start; /* really: at the moment, when the growth began */
	/* Held by the space's allocator beside what lives, at the same moments. */
	uint64_t slack, slack_start;
	uint64_t without, without_start; /* the same, without the cause */
	/* The most that lived without it since the start, at each part of the second half of the
	 * time since then. */
	uint64_t without_peaks[TREND_MARKS];
};

/* One replay for all candidates, in the space that `places` are of (its name; NULL: the host). The
 * growth that each is to explain began at its finding's start_ns. 0, or negative with err. */
int counterfactual_replay(struct feed feed, const char *space, const struct callsites *callsites,
    const struct candidate *candidates, size_t count, struct replay_result *out, struct err *err);

#endif
