/* rank.h - sorts the candidate causes from best to worst, with the confidence in each. */
#ifndef ANALYZER_VERDICT_RANK_H
#define ANALYZER_VERDICT_RANK_H

#include "util/tuned.h"
#include "verdict/judge/counterfactual.h"
#include "verdict/result.h"

struct rank_input {
	uint64_t limit_bytes, usage_bytes, request_bytes;
	uint64_t others_grown; /* growth of others under the limit since this process began there */
	bool failed;
};

/* Rank the candidates; replays[i] is of candidates[i]. Fills removed, headroom, fits, share,
 * further, admissible, score and confidence of each, and sorts both arrays alike, best first. */
void rank_candidates(const struct rank_input *in, struct candidate *candidates,
    struct replay_result *replays, size_t count);

TUNED(double, RANK_CONFIDENCE_MIN, 0.5,
    "below it the verdict is `unknown`: a cause that is more likely wrong than right misleads");
TUNED(double, RANK_STRENGTH_MIN, 0.4,
    "a shape with one strong doubt still counts, with two it does not");

/* Return the confidence, 0 to 1, in a winner of that score with a second of that score (0: none): a
 * logistic of score and margin, so that neither a weak winner without rivals is sure, nor a strong
 * one with a strong rival. */
double rank_confidence(double score, double second);

#endif
