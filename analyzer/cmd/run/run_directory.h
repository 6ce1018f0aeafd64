/*
 * run_directory.h - the directory of a run's traces: finds a place for it, makes it, and puts away
 * what an earlier run left there. Follows no link, and writes nothing outside the directory.
 */
#ifndef ANALYZER_CMD_RUN_DIR_H
#define ANALYZER_CMD_RUN_DIR_H

#include <limits.h>
#include <stdbool.h>

#include "util/text/err.h"

struct run_dir {
	char path[PATH_MAX]; /* absolute */
	int fd;
	bool made; /* by us: removed again when nothing came of it */
	char killed[PATH_MAX]; /* where the traces of a run that was killed are now, or "" */
	char note[512]; /* to be said to the user, or "" */
};

struct run_dir_wish {
	const char *path; /* NULL or "": whyoom.PID here, or under /var/tmp */
	bool allow_tmpfs;
	bool inherited; /* from the environment: one in use is not an error, another is made */
};

/* 0; negative errno with err filled, and then nothing was left behind. */
int run_dir_open(const struct run_dir_wish *wish, struct run_dir *out, struct err *err);

/* Did a call in any process run out of memory? By the traces' headers; true when in doubt. */
bool run_dir_failed(const struct run_dir *dir);

/* When the program has ended: cuts off the holes at the ends of traces whose processes are gone,
 * and removes users' directories that are empty. */
void run_dir_tidy(const struct run_dir *dir);

/* Removes a directory that we made and whose program never started. */
void run_dir_discard(struct run_dir *dir);
void run_dir_close(struct run_dir *dir);

#endif
