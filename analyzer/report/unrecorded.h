/*
 * unrecorded.h - the processes and programs of a run that left no trace. A supervisor notes the
 * processes that it meets, a process the programs that it starts by exec or posix_spawn.
 */
#ifndef ANALYZER_REPORT_UNRECORDED_H
#define ANALYZER_REPORT_UNRECORDED_H

#include "trace/trace.h"
#include "util/text/str.h"

/* A supervisor names so many, as INFO untraced.1, untraced.2, ...; INFO untraced is their
 * number. */
#define UNRECORDED_NAMED 16u

/* Append "3 processes left no trace: ..."; nothing if there are none, or no supervisor (NULL). */
void unrecorded_processes(const struct trace *supervisor, struct str *out);

/* Append the programs that the traces' processes started and that are not recorded, most started
 * first: "/usr/bin/docker (linked statically), ..."; nothing if there are none. */
void unrecorded_programs(struct trace *const *traces, size_t count, struct str *out);

/* Return the JSON key of a reason (enum trace_unrecorded_why). */
const char *unrecorded_key(uint32_t why);

#endif
