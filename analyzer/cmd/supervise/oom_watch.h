/*
 * oom_watch.h - a descriptor that wakes us when a memory cgroup is out of memory, before the
 * kernel's killer has struck: version 1 tells it of memory.oom_control, version 2 of memory.events.
 * What is charged to whom then is what the ledger is about. One thread.
 */
#ifndef ANALYZER_CMD_RUN_WATCH_H
#define ANALYZER_CMD_RUN_WATCH_H

#include <stdint.h>

#include "cmd/supervise/cgroup.h"

struct run_watch {
	int fd; /* for poll(); -1: nothing will come, as where the hierarchy cannot be written to */
	int version;
	uint64_t count; /* version 2: how often the group was out of memory */
	char dir[PATH_MAX];
};

void run_watch_init(struct run_watch *w);
/* From now on this group; nothing is done when it is the one that is watched. */
void run_watch_on(struct run_watch *w, const struct run_cgroup *cgroup);
/* What has come since this was last asked; after poll(). */
enum run_watch_news { RUN_WATCH_NOTHING, RUN_WATCH_FULL, RUN_WATCH_OOM };
enum run_watch_news run_watch_take(struct run_watch *w);
void run_watch_off(struct run_watch *w);

#endif
