/*
 * sample.h - samples the target, its descendants and their cgroup from outside, and writes changes
 * to run.whyoom. All samples together take at most about a hundredth of a core (cpu_budget.h), and
 * far less while nothing changes. One thread.
 */
#ifndef ANALYZER_CMD_RUN_SAMPLE_H
#define ANALYZER_CMD_RUN_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/supervise/cpu_budget.h"
#include "cmd/supervise/supervisor_trace.h"

struct run_sampler;

/* `dir` is the trace directory; a process that left the family tree is found by its file there.
 * `off`: the processes record nothing, and sampling must cost next to nothing. NULL: out of
 * memory. */
struct run_sampler *run_sampler_new(struct run_trace *trace, pid_t target, int dir, bool off);
void run_sampler_free(struct run_sampler *s);

/* Take the samples that are due at `now_ns` (CLOCK_MONOTONIC); returns when the next one is due. */
uint64_t run_sampler_tick(struct run_sampler *s, uint64_t now_ns);

/* True if the kernel killed a process of the cgroup for lack of memory, or held one back, since the
 * start: any process of the group, also a worker whose parent ended well. */
bool run_sampler_short(const struct run_sampler *s);

/* Returns the budget, so that helpers can be charged to it. */
struct run_budget *run_sampler_budget(struct run_sampler *s);

/* Readable when run_sampler_woken() has something to do; -1: never. It may change with each call.
 */
int run_sampler_fd(const struct run_sampler *s);
/* Sample at once if the cgroup is out of memory: a kill soon changes the levels. */
void run_sampler_woken(struct run_sampler *s, uint64_t now_ns);

/* Sample the cgroup as the target left it, and the target's peak of resident memory. Call after the
 * target was reaped and its end recorded. */
void run_sampler_last(struct run_sampler *s);

#endif
