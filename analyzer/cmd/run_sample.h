/*
 * run_sample.h - looks at the target and its descendants from outside, and at their cgroup, and
 * writes what changed to run.whyoom. Costs at most about two percent of one CPU: what is slow to
 * read is read less often. One thread.
 */
#ifndef ANALYZER_CMD_RUN_SAMPLE_H
#define ANALYZER_CMD_RUN_SAMPLE_H

#include <stdint.h>
#include <sys/types.h>

#include "cmd/run_trace.h"

struct run_sampler;

/* `dir` is the traces' directory: a process that left the family tree is known by its file there.
 * NULL: out of memory. */
struct run_sampler *run_sampler_new(struct run_trace *trace, pid_t target, int dir);
void run_sampler_free(struct run_sampler *s);

/* Samples what is due at `now_ns` (CLOCK_MONOTONIC); returns when the next is due. */
uint64_t run_sampler_tick(struct run_sampler *s, uint64_t now_ns);

/* The counters once more, at the end, and the most that the target had resident. After it was
 * waited for. */
void run_sampler_last(struct run_sampler *s);

#endif
