/*
 * unrecorded.h - the table of programs that this process started, or became, and that are not
 * recorded: in the header of its trace, which the children of a fork have until they have their
 * own. No lock, no system call; any moment.
 */
#ifndef SHIM_UNRECORDED_H
#define SHIM_UNRECORDED_H

#include "whyoom/trace.h"

/* One more start. */
void unrecorded_add(struct trace_header *h, enum trace_unrecorded_why why, const char *path);

/* Which then failed. */
void unrecorded_take_back(struct trace_header *h, enum trace_unrecorded_why why, const char *path);

/* What one table holds goes to another one. */
void unrecorded_pass_on(const struct trace_header *from, struct trace_header *to);

#endif
