/*
 * sample.h - looks at the target and its descendants from outside, and at their cgroup, and
 * writes what changed to run.whyoom. All looks together cost at most about a hundredth of a core
 * (cpu_budget.h), and far less while nothing moves. One thread.
 */
#ifndef ANALYZER_CMD_RUN_SAMPLE_H
#define ANALYZER_CMD_RUN_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cmd/supervise/cpu_budget.h"
#include "cmd/supervise/supervisor_trace.h"

struct run_sampler;

/* `dir` is the traces' directory: a process that left the family tree is known by its file there.
 * `off`: the processes record nothing, and looking at them is to cost next to nothing. NULL: out of
 * memory. */
struct run_sampler *run_sampler_new(struct run_trace *trace, pid_t target, int dir, bool off);
void run_sampler_free(struct run_sampler *s);

/* Samples what is due at `now_ns` (CLOCK_MONOTONIC); returns when the next is due. */
uint64_t run_sampler_tick(struct run_sampler *s, uint64_t now_ns);

/* What others who look on our behalf are charged to, too. */
struct run_budget *run_sampler_budget(struct run_sampler *s);

/* Readable when run_sampler_woken() has something to do; -1: never. It may change with each call.
 */
int run_sampler_fd(const struct run_sampler *s);
/* Looks at once where the cgroup is out of memory: what was charged to whom is gone soon. */
void run_sampler_woken(struct run_sampler *s, uint64_t now_ns);

/* The cgroup once more, as the target left it, and the most that this had resident. After it was
 * waited for, and that was recorded. */
void run_sampler_last(struct run_sampler *s);

#endif
