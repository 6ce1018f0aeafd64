/*
 * rank.h - candidates from best to worst, with the confidence of each.
 */
#ifndef ANALYZER_VERDICT_RANK_H
#define ANALYZER_VERDICT_RANK_H

#include "verdict/judge/counterfactual.h"
#include "verdict/result.h"

struct rank_input {
	uint64_t limit_bytes, usage_bytes, request_bytes;
	uint64_t others_grown; /* what others took of the limit since the process began there */
	bool failed;
};

/* Fills removed, headroom, fits, share, further, admissible, score and confidence from the replays,
 * and sorts both arrays alike, best first. */
void rank_candidates(const struct rank_input *in, struct candidate *candidates,
    struct replay_result *replays, size_t count);

/* Below this the verdict is `unknown`. */
#define RANK_CONFIDENCE_MIN 0.5
/* And below this strength a shape is not there. */
#define RANK_STRENGTH_MIN 0.4

/*
 * How sure a winner of that score is beside a second of that score (0: there is none): a logistic
 * of its score and of the margin, so that a weak winner is not sure because it stands alone, nor a
 * strong one beside a strong rival. The weights are to be fitted on labelled programs.
 */
double rank_confidence(double score, double second);

#endif
