/*
 * refusals.h - says before anything is touched why a process cannot be attached to, and what to do
 * instead.
 */
#ifndef ANALYZER_ATTACH_REFUSALS_H
#define ANALYZER_ATTACH_REFUSALS_H

#include "attach/target.h"
#include "util/text/err.h"

enum refusals_for { REFUSALS_ATTACH, REFUSALS_DETACH };

/* Check a process; reads its mappings. 0; negative errno with err. */
int refusals_check(struct target *target, enum refusals_for what, struct err *err);
/* A warning: what may go wrong nevertheless, or "". */
const char *refusals_warning(const struct target *target);
/* Explain why a process that passed the check may not be traced. Returns `error`, negative. */
int refusals_trace(const struct target *target, int error, struct err *err);

#endif
