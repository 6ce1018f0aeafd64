/*
 * unrecorded.h - the processes and programs of a run that left no trace, as its traces tell of
 * them. A supervisor notes the processes that it meets; a process notes the programs that it starts
 * by exec or posix_spawn.
 */
#ifndef ANALYZER_REPORT_UNRECORDED_H
#define ANALYZER_REPORT_UNRECORDED_H

#include "trace/trace.h"
#include "util/text/str.h"

/* A supervisor's trace names so many processes, as INFO untraced.1, untraced.2, ...; INFO untraced
 * is the number of all. */
#define UNRECORDED_NAMED 16u

/* Appends "3 processes left no trace: ..."; nothing if there were none, or no supervisor (NULL). */
void unrecorded_processes(const struct trace *supervisor, struct str *out);

/* Appends the programs that the traces' processes started and that are not recorded, most started
 * first: "/usr/bin/docker (linked statically), ..."; nothing if there were none. */
void unrecorded_programs(struct trace *const *traces, size_t count, struct str *out);

/* Why a program is not recorded (enum trace_unrecorded_why), as a key of JSON. */
const char *unrecorded_key(uint32_t why);

#endif
