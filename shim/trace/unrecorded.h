/*
 * unrecorded.h - the table of programs that this process started, or became, and that are not
 * recorded. It lies in the header of the trace, which forked children share until they have their
 * own. No lock, no system call; any moment.
 */
#ifndef SHIM_UNRECORDED_H
#define SHIM_UNRECORDED_H

#include "whyoom/trace.h"

/* Count one start of that program. */
void unrecorded_add(struct trace_header *h, enum trace_unrecorded_why why, const char *path);

/* Take back one start that failed. */
void unrecorded_take_back(struct trace_header *h, enum trace_unrecorded_why why, const char *path);

/* Add one table to another. */
void unrecorded_pass_on(const struct trace_header *from, struct trace_header *to);

#endif
