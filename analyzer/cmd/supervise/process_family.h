/*
 * process_family.h - the processes that belong to a run: the target and its descendants, including
 * orphans that init has adopted. One thread.
 *
 * Scanning /proc costs more the more processes the machine has, so it is done only if a process has
 * started since (by the kernel's last pid or the trace directory), and a process that does not
 * belong to the run is examined only once.
 */
#ifndef ANALYZER_CMD_RUN_FAMILY_H
#define ANALYZER_CMD_RUN_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "util/vec.h"

struct run_member {
	pid_t pid;
	uint64_t start; /* clock ticks since boot: tells processes with the same pid apart */
	bool seen; /* in this scan of /proc */
	void *look; /* of the caller; NULL for a new member */
};

/* Processes that do not belong to the run. */
struct run_strangers {
	pid_t *items;
	size_t count, capacity;
};

struct run_family {
	int dir; /* descriptor of the trace directory; the caller's */
	VEC(struct run_member) members; /* the target first, until it has ended */
	uint64_t oldest; /* when the target started: older processes do not belong to it */
	int loadavg; /* kept open; -1: it cannot be */
	long last_pid; /* at the last scan; 0: this kernel does not say */
	struct timespec changed; /* the directory, at the last scan */
	struct run_strangers strangers; /* sorted */
	void (*leave)(struct run_member *member); /* called when a member has ended */
};

void run_family_init(
    struct run_family *f, pid_t target, int dir, void (*leave)(struct run_member *member));
void run_family_fini(struct run_family *f);

/* Has a process started since run_family_find()? Cheap. */
bool run_family_news(struct run_family *f);

/* Add new members and drop those that have ended. `all`: also examine the processes again that did
 * not belong to the run, as their pids may have been reused. */
void run_family_find(struct run_family *f, bool all);

/* Drop a member that has ended. */
void run_family_drop(struct run_family *f, size_t index);

#endif
