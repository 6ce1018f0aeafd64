/*
 * new_file.h - a file that appears whole or not at all: it is written under a hidden name beside
 * its place, is on the disk when it takes that place, and is removed when it cannot, or when a
 * signal ends the command (unfinished.h).
 */
#ifndef ANALYZER_UTIL_NEW_FILE_H
#define ANALYZER_UTIL_NEW_FILE_H

#include <limits.h>
#include <sys/types.h>

struct new_file {
	int fd; /* to be written to, from its beginning; -1: there is none */
	char path[PATH_MAX + 64]; /* for now */
};

/* 0, or negative errno. */
int new_file_begin(struct new_file *f, const char *target);
/* In place of what is there under that name. 0, or negative errno: what was there is as it was.
 * Ends it either way. */
int new_file_commit(struct new_file *f, const char *target);
/* Accepts one that has ended. */
void new_file_abort(struct new_file *f);

/* 0666 less the mask: what open() gives a file that anybody makes. */
mode_t new_file_mode(void);

#endif
