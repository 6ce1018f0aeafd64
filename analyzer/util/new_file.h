/*
 * new_file.h - writes a file that appears whole or not at all: under a hidden name beside the
 * target, synced before it is renamed, and removed on failure or when a signal ends the command
 * (unfinished.h).
 */
#ifndef ANALYZER_UTIL_NEW_FILE_H
#define ANALYZER_UTIL_NEW_FILE_H

#include <limits.h>
#include <sys/types.h>

struct new_file {
	int fd; /* for writing, at offset 0; -1: none */
	char path[PATH_MAX + 64]; /* the temporary name */
};

/* Create the temporary file. 0 or negative errno. */
int new_file_begin(struct new_file *f, const char *target);
/* Replace `target`. 0; negative errno: `target` is unchanged. Ends the file either way. */
int new_file_commit(struct new_file *f, const char *target);
/* Remove the temporary file; accepts one that has ended. */
void new_file_abort(struct new_file *f);

/* 0666 less the umask, the mode of an ordinary new file. */
mode_t new_file_mode(void);

#endif
