/*
 * cgroup.h - the memory cgroup (version 1 or 2) that limits a process, and the numbers in its
 * files. Reads only. One thread.
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

/* Find the cgroup of a process. `root` is prefixed to every path; only tests need it. If the
 * process has ended, out->version is 0. */
void run_cgroup_find(const char *root, pid_t pid, struct run_cgroup *out);

/* Read at most `max` levels CG_* and return how many. Levels that this kernel lacks are left out.
 */
size_t run_cgroup_levels(const struct run_cgroup *cgroup, struct event_level *out, size_t max);

/* Open the file of the group's usage, for reading often; -1: there is none. run_cgroup_usage()
 * reads it; false: it could not. */
int run_cgroup_open(const struct run_cgroup *cgroup);
bool run_cgroup_usage(int fd, uint64_t *out);

/* Read CG_HIGH_COUNT, CG_OOM and CG_OOM_KILL of a version 2 group, from one small file. */
#define RUN_CGROUP_EVENTS 3
size_t run_cgroup_events(const char *dir, struct event_level out[RUN_CGROUP_EVENTS]);

/* Read SYS_TOTAL, SYS_AVAILABLE and SYS_SWAP_FREE of the machine; parameters as above. */
size_t run_system_levels(const char *root, struct event_level *out, size_t max);

/* Read SYS_OOM_KILL of the machine. Slow on large machines, where each CPU has its own count: use
 * it at the start and the end only. */
size_t run_system_kills(const char *root, struct event_level *out, size_t max);

#endif
