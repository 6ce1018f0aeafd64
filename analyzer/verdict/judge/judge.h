/*
 * judge.h - inside verdict/: judges one space, whether it ran out or not, by detectors, replay and
 * rank.
 */
#ifndef ANALYZER_VERDICT_JUDGE_H
#define ANALYZER_VERDICT_JUDGE_H

#include "verdict/result.h"

/* A model of the space's allocator: what would each candidate's absence have changed? */
struct judge_trial {
	/* Fill the candidates' trials. 0; negative errno with err. */
	int (*ask)(void *self, struct feed feed, struct ranking *ranking, struct err *err);
	void *self;
};

/* Fill *out from the scene of r's process. `trial` NULL: no model of the allocator. 0; negative
 * errno, with err unless -ENOMEM. */
int judge_scene(const struct verdict_result *r, const struct scene *scene,
    const struct judge_trial *trial, struct feed feed, struct ranking *out, struct err *err);

#endif
