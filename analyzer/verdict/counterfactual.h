/*
 * counterfactual.h - the trace replayed through the model once more, with each candidate cause
 * taken away at the same time but apart from the others: how much would have lived, and would the
 * refused request have fitted?
 */
#ifndef ANALYZER_VERDICT_COUNTERFACTUAL_H
#define ANALYZER_VERDICT_COUNTERFACTUAL_H

#include "verdict/verdict.h"

struct replay_result {
	uint64_t live, live_start; /* really: at the moment, when the growth began */
	uint64_t without, without_start; /* the same, without the cause */
	uint64_t without_middle;	 /* half-way between the two, by time */
	uint64_t without_peak;
};

/* One replay for all candidates. `start_ns`: where the growth began. 0, or negative with err. */
int counterfactual_replay(struct feed feed, const struct places *places,
    const struct candidate *candidates, size_t count, uint64_t start_ns, uint64_t moment_ns,
    struct replay_result *out, struct err *err);

#endif
