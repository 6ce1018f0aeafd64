/*
 * stack_tree.h - turns definitions of stacks, in any order, into nodes of a tree. Only for
 * definitions.c.
 */
#ifndef ANALYZER_TRACE_DEFS_STACKS_H
#define ANALYZER_TRACE_DEFS_STACKS_H

#include "trace/definitions/definitions.h"

/* Take one definition. Its bytes must stay valid until defs_stacks_settle(), as several lookups
 * run at a time. 0; 1: it contradicts the format; -ENOMEM. A contradiction that is found later
 * counts in d->broken. */
int defs_stack(struct defs *d, struct cursor *c);
/* Finish all lookups: each stack is defined, or waits for its base. 0 or -ENOMEM. */
int defs_stacks_settle(struct defs *d);
void defs_stacks_fini(struct defs *d);

#endif
