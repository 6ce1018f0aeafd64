/*
 * stack_tree.h - definitions of stacks: frames to the nodes of a tree, whatever order they come
 * in. Only for definitions.c.
 */
#ifndef ANALYZER_TRACE_DEFS_STACKS_H
#define ANALYZER_TRACE_DEFS_STACKS_H

#include "trace/definitions/definitions.h"

/* The body of one, which stays where it is until defs_stacks_settle(): several are looked for at a
 * time. 0, -ENOMEM, or 1: it contradicts the format. What turns out to do so later is counted in
 * d->broken. */
int defs_stack(struct defs *d, struct cursor *c);
/* All that came so far are defined, or wait for their base. 0 or -ENOMEM. */
int defs_stacks_settle(struct defs *d);
void defs_stacks_fini(struct defs *d);

#endif
