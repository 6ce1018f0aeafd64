/*
 * subject.h - one process, from its events to the verdict: model, failure, detectors, replay, rank,
 * ledger, words.
 */
#ifndef ANALYZER_VERDICT_SUBJECT_H
#define ANALYZER_VERDICT_SUBJECT_H

#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* Build a process's model in one pass. The caller frees *out. 0; negative errno with err. */
int subject_model(struct feed feed, struct model **out, struct err *err);
/* The same with these options. */
int subject_model_with(
    struct feed feed, const struct model_options *options, struct model **out, struct err *err);

/* Judge the process of r->model and `feed`, and fill the rest of *r. Pre: r->tree (except the
 * processes' memory), r->frameworks and r->model are set. `supervised` may be NULL. 0; negative
 * errno with err. */
int subject_judge(struct verdict_result *r, struct feed feed, const struct supervised *supervised,
    struct err *err);

#endif
