/*
 * cgroup.h - the memory cgroup that a process is charged to, version 1 or 2: which one limits
 * it, and what its files say. Reads only. One thread.
 */
#ifndef ANALYZER_CMD_RUN_CGROUP_H
#define ANALYZER_CMD_RUN_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "trace/event.h"

struct run_cgroup {
	int version; /* 1, 2; 0: no memory controller can be seen */
	char path[PATH_MAX]; /* as /proc/PID/cgroup names it */
	char dir[PATH_MAX]; /* of the group with the smallest limit, from this one upwards */
};

/* `root` is prefixed to every path: "" but for tests. A process that is gone gives version 0. */
void run_cgroup_find(const char *root, pid_t pid, struct run_cgroup *out);

/* Writes at most `max` levels, CG_*, and returns how many; what a kernel does not tell is left out.
 */
size_t run_cgroup_levels(const struct run_cgroup *cgroup, struct event_level *out, size_t max);

/* Its usage, to be read often: a descriptor to be kept open, -1: there is none. And what that says;
 * false: nothing. */
int run_cgroup_open(const struct run_cgroup *cgroup);
bool run_cgroup_usage(int fd, uint64_t *out);

/* Of a group of version 2 only CG_OOM and CG_OOM_KILL: one small file. */
#define RUN_CGROUP_EVENTS 2
size_t run_cgroup_events(const char *dir, struct event_level out[RUN_CGROUP_EVENTS]);

/* SYS_TOTAL and SYS_AVAILABLE, likewise. */
size_t run_system_levels(const char *root, struct event_level *out, size_t max);

/* SYS_OOM_KILL, likewise. Slow on large machines, where each CPU has its own count: for the start
 * and the end. */
size_t run_system_kills(const char *root, struct event_level *out, size_t max);

#endif
