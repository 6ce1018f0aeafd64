/*
 * judge.h - inside verdict/: judges one space, whether it ran out or not, by detectors, replay and
 * rank.
 */
#ifndef ANALYZER_VERDICT_JUDGE_H
#define ANALYZER_VERDICT_JUDGE_H

#include "verdict/result.h"

/* Fill r->ranking from the scene of r's process. `ask` NULL: there is no model of the space's
 * allocator; else it fills the candidates' trials in r->ranking: what would each one's absence have
 * changed? 0; negative errno, with err unless -ENOMEM. */
int judge_scene(struct verdict_result *r, const struct scene *scene,
    int (*ask)(struct verdict_result *r, struct feed feed, struct err *err), struct feed feed,
    struct err *err);

#endif
