/*
 * judge.h - inside verdict/: one space that ran out, or did not, through detectors, replay and
 * rank.
 */
#ifndef ANALYZER_VERDICT_JUDGE_H
#define ANALYZER_VERDICT_JUDGE_H

#include "verdict/result.h"

/* Asks the space's own allocator about r->candidates: fills their trials. 0 or negative, err
 * filled. */
typedef int (*judge_trial_fn)(struct verdict_result *r, struct feed feed, struct err *err);

/* Fills r->candidates, best first. The scene's places are r's own; `trial` NULL: nobody can be
 * asked. 0; negative errno. */
int judge_scene(struct verdict_result *r, const struct scene *scene, judge_trial_fn trial,
    struct feed feed, struct err *err);

#endif
