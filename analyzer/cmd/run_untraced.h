/*
 * run_untraced.h - descendants that leave no trace: linked statically, setuid, started with other
 * rights or without the library. The supervisor notes them in its own trace as it meets them, and
 * the commands that read it say so. Those that live for less than a second are not met.
 */
#ifndef ANALYZER_CMD_RUN_UNTRACED_H
#define ANALYZER_CMD_RUN_UNTRACED_H

#include <stdbool.h>
#include <sys/types.h>

#include "cmd/run_trace.h"
#include "trace/trace.h"
#include "util/str.h"

/* Does the program that this process runs now record? Also true for one that has ended, and for a
 * child of a fork that has not allocated yet, as it needs no trace of its own. */
bool run_untraced_has(pid_t pid, int dir);

/* One more: `count` with it. */
void run_untraced_note(struct run_trace *t, pid_t pid, unsigned count);
/* At the end. */
void run_untraced_total(struct run_trace *t, unsigned count);

/* "3 processes left no trace: ..."; nothing when there were none. `supervisor` may be NULL. */
void run_untraced_words(const struct trace *supervisor, struct str *out);

#endif
