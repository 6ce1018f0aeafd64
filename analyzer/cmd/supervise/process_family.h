/*
 * process_family.h - which processes belong to a run: the target and what descends from it, also
 * what was handed to init meanwhile. One thread.
 *
 * To look through /proc costs the more the more processes the machine has; so it is only done when
 * a process has been started since, as the kernel's last pid or the traces' directory tell, and of
 * those that do not belong here only the first time.
 */
#ifndef ANALYZER_CMD_RUN_FAMILY_H
#define ANALYZER_CMD_RUN_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct run_member {
	pid_t pid;
	uint64_t start; /* clock ticks since boot: tells a pid's next owner apart */
	bool seen; /* in this look through /proc */
	void *look; /* the user's; NULL when it has just joined */
};

struct run_family {
	int dir; /* the traces': the caller's */
	struct run_member *members; /* the target first, until it has ended */
	size_t count, room;
	uint64_t oldest; /* when the target started: nobody older belongs to it */
	int loadavg; /* kept open; -1: it cannot be */
	long last_pid; /* at the last look; 0: this kernel does not tell */
	struct timespec changed; /* the directory, likewise */
	pid_t *strangers; /* sorted */
	size_t stranger_count, stranger_room;
	void (*leave)(struct run_member *member); /* it is no more */
};

void run_family_init(
    struct run_family *f, pid_t target, int dir, void (*leave)(struct run_member *member));
void run_family_fini(struct run_family *f);

/* Has a process been started since run_family_find()? Cheap. */
bool run_family_news(struct run_family *f);

/* Takes in who has come and lets go who has ended. `all`: looks at those again, too, that did not
 * belong here, whose pid may be another's by now. */
void run_family_find(struct run_family *f, bool all);

/* It has ended. */
void run_family_drop(struct run_family *f, size_t index);

#endif
