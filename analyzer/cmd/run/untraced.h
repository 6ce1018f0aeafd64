/*
 * untraced.h - descendants that leave no trace: linked statically, setuid, started with other
 * rights or without the library. The supervisor notes them in its own trace as it meets them, and
 * the commands that read it say so. Those that live for less than a second are not met. Who starts
 * a program by exec or posix_spawn, and sees that it will leave none, notes that in its own trace.
 */
#ifndef ANALYZER_CMD_RUN_UNTRACED_H
#define ANALYZER_CMD_RUN_UNTRACED_H

#include <stdbool.h>
#include <sys/types.h>

#include "cmd/supervise/supervisor_trace.h"
#include "trace/trace.h"
#include "util/text/str.h"

/* Does the program that this process runs now record? Also true for one that has ended, and for a
 * child of a fork that has not allocated yet, as it needs no trace of its own. */
bool run_untraced_has(pid_t pid, int dir);

/* One more: `count` with it. */
void run_untraced_note(struct run_trace *t, pid_t pid, unsigned count);
/* At the end. */
void run_untraced_total(struct run_trace *t, unsigned count);

/* "3 processes left no trace: ..."; nothing when there were none. `supervisor` may be NULL. */
void run_untraced_words(const struct trace *supervisor, struct str *out);

/* Programs that were started and are not recorded, as those say that started them, in the traces of
 * all: "/usr/bin/docker (linked statically), ..."; nothing when there were none. */
void run_untraced_programs(struct trace *const *traces, size_t count, struct str *out);

/* Why one is not, in words, and as JSON has it. */
const char *run_untraced_why(uint32_t why);
const char *run_untraced_key(uint32_t why);

#endif
