/*
 * untraced.h - for the supervisor: which descendants leave no trace (linked statically, setuid,
 * with other rights or without the library), and notes about them in its own trace, which
 * report/unrecorded.h reads. A descendant that lives for less than a second is not met.
 */
#ifndef ANALYZER_CMD_RUN_UNTRACED_H
#define ANALYZER_CMD_RUN_UNTRACED_H

#include <stdbool.h>
#include <sys/types.h>

#include "cmd/supervise/supervisor_trace.h"

/* Does the program that this process runs now record? Also true for one that has ended, and for a
 * forked child that has not allocated yet, as it needs no trace of its own. `dir` is a descriptor
 * of the trace directory. */
bool run_untraced_has(pid_t pid, int dir);

/* Notes one process more; `count` includes it. */
void run_untraced_note(struct run_trace *t, pid_t pid, unsigned count);
/* Notes how many there were, at the end. */
void run_untraced_total(struct run_trace *t, unsigned count);

#endif
