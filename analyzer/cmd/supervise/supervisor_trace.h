/*
 * supervisor_trace.h - writes run.whyoom, the supervisor's own trace: levels seen from outside, and
 * how children ended. The file is a trace like any other (docs/trace-format.md, header mode 2).
 *
 * When a call returns, its data is in the page cache, so a SIGKILL after that loses nothing. No
 * call fails: lost data is counted, in the header if that is still possible. One thread.
 */
#ifndef ANALYZER_CMD_RUN_TRACE_H
#define ANALYZER_CMD_RUN_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/event.h"
#include "util/text/err.h"

#define RUN_TRACE_NAME "run.whyoom"

struct run_trace;

/* Make the file in the directory; -EEXIST: there is one. The file stays locked until it is closed,
 * which tells another supervisor that the directory is in use. */
int run_trace_new(int dir, struct run_trace **out, struct err *err);

void run_trace_info(struct run_trace *t, const char *key, const char *value);
/* Define a space; ids begin at 1. */
void run_trace_space(struct run_trace *t, uint32_t id, const char *name);
/* Write strings as one value, with a NUL between them. */
void run_trace_info_list(struct run_trace *t, const char *key, char *const *strings);

/* Write levels of a process; `pid` 0: of the cgroup and the machine. `seen_ns`: when they were
 * read, by CLOCK_MONOTONIC, 0: now; not before the last event that was written. */
void run_trace_levels(struct run_trace *t, uint64_t seen_ns, pid_t pid,
    const struct event_level *levels, size_t count);
/* Write levels of a space; `pid` 0: of all processes. */
void run_trace_levels_of(
    struct run_trace *t, pid_t pid, uint32_t space, const struct event_level *levels, size_t count);

/* Write the end of a child: si_code and si_status of waitid(). `direct`: it is the supervisor's own
 * child, not an orphan that it inherited. */
void run_trace_child_end(struct run_trace *t, pid_t pid, int code, int status, bool direct);

/* Bytes of the file so far. */
uint64_t run_trace_bytes(const struct run_trace *t);

/* Returns the errno of the first write that failed; 0: none did. */
int run_trace_trouble(const struct run_trace *t);

int run_trace_fd(const struct run_trace *t);

/* Write how the supervisor ends, and close the file. Accepts NULL. */
void run_trace_close(struct run_trace *t, int exit_code);

#endif
