/*
 * run_directory.h - the directory for the traces of a run: chooses and makes it, and moves an
 * earlier run's traces away. Follows no link, and writes nothing outside the directory.
 */
#ifndef ANALYZER_CMD_RUN_DIR_H
#define ANALYZER_CMD_RUN_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "util/text/err.h"

struct run_dir {
	char path[PATH_MAX]; /* absolute */
	int fd;
	bool made; /* by us: removed if the program does not start */
	char killed[PATH_MAX]; /* where the traces of an earlier, killed run are now, or "" */
	char note[512]; /* a message for the user, or "" */
};

struct run_dir_wish {
	const char *path; /* NULL or "": whyoom.PID here, or under /var/tmp */
	pid_t pid; /* in that name; 0: ours */
	bool allow_tmpfs;
	bool inherited; /* from the environment: if it is in use, another one is made */
};

/* Make and lock the directory. 0; negative errno with err, and nothing is left behind. */
int run_dir_open(const struct run_dir_wish *wish, struct run_dir *out, struct err *err);

/* Is that directory on a file system whose pages are memory? */
bool run_dir_is_memory(int fd);

/* Did a request for memory fail in any process, by the headers of the traces? True if in doubt. */
bool run_dir_failed(const struct run_dir *dir);

/* Tidy up after the program has ended: cut off the holes at the ends of traces whose processes have
 * ended, and remove empty directories of other users. */
void run_dir_tidy(const struct run_dir *dir);

/* Remove a directory that we made, after its program did not start. */
void run_dir_discard(struct run_dir *dir);
void run_dir_close(struct run_dir *dir);

#endif
