/*
 * judge.h - inside verdict/: one space that ran out, or did not, through detectors, replay and
 * rank.
 */
#ifndef ANALYZER_VERDICT_JUDGE_H
#define ANALYZER_VERDICT_JUDGE_H

#include "verdict/verdict.h"

/* Fills r->candidates, best first. The scene's places are r's own. 0; negative errno. */
int judge_scene(
    struct verdict_result *r, const struct scene *scene, struct feed feed, struct err *err);

#endif
