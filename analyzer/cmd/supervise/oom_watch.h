/*
 * oom_watch.h - a descriptor that wakes the supervisor when a memory cgroup runs out of memory,
 * before the kernel kills (memory.oom_control of version 1, memory.events of version 2). The ledger
 * needs the levels of that moment. One thread.
 */
#ifndef ANALYZER_CMD_RUN_WATCH_H
#define ANALYZER_CMD_RUN_WATCH_H

#include <stdint.h>

#include "cmd/supervise/cgroup.h"

struct run_watch {
	int fd; /* for poll(); -1: no events, as if the hierarchy is read-only */
	int version;
	uint64_t count; /* version 2: of times that the group ran out of memory */
	char dir[PATH_MAX];
};

void run_watch_init(struct run_watch *w);
/* Watch this group from now on, if it is not watched already. */
void run_watch_on(struct run_watch *w, const struct run_cgroup *cgroup);
/* Returns what has happened since the last call; call it after poll(). */
enum run_watch_news { RUN_WATCH_NOTHING, RUN_WATCH_FULL, RUN_WATCH_OOM };
enum run_watch_news run_watch_take(struct run_watch *w);
void run_watch_off(struct run_watch *w);

#endif
