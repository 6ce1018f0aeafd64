/*
 * subject.h - inside verdict/: the steps for one process, and the choice of it among many.
 */
#ifndef ANALYZER_VERDICT_SUBJECT_H
#define ANALYZER_VERDICT_SUBJECT_H

#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* One pass over the feed. */
int subject_model(struct feed feed, struct model **out, struct err *err);
/* Everything but r->processes, from r->model. `victim`: the kernel's log says that its OOM killer
 * took the process. */
int subject_judge(struct verdict_result *r, struct feed feed, const struct supervised *s,
    bool victim, struct err *err);

#endif
