/*
 * source.h - the bytes of one trace file. Read by position into the reader's own buffers: a mapping
 * of a file that somebody truncates meanwhile, or whose disk fails, would kill the reader by
 * SIGBUS, and would count as its memory.
 */
#ifndef ANALYZER_TRACE_SOURCE_H
#define ANALYZER_TRACE_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/text/err.h"

struct packed;
struct small;
struct small_place;

struct source {
	char *path;
	int fd; /* -1: to be opened again at the next read */
	uint64_t size; /* of the trace: of a packed file it is more than the file's */
	struct packed *packed; /* NULL: it is not */
	char *shared; /* the file of small traces that it is in, where it is; else NULL */
	struct small_place *place; /* where in that */
	struct small *small; /* its bytes, while the file is open */
	dev_t device;
	ino_t inode;
	/* Where it is there, what cannot be read is all zeros, and told to it. */
	void (*unreadable)(void *arg, uint64_t offset, uint64_t bytes);
	void *arg;
};

/* 0; -EISDIR, -EINVAL (not a regular file) and the errors of open(). */
int source_open(struct source *s, const char *path, struct err *err);
/* The same of a small trace in a file that it shares with others; `path` is as if it had its own.
 */
int source_open_small(struct source *s, const char *path, const char *shared,
    const struct small_place *place, struct err *err);
/* Gives the descriptor back; a directory may hold thousands of traces. */
void source_rest(struct source *s);
void source_close(struct source *s);
/* Looks at the size again: the process may be running. 0 or negative errno. */
int source_refresh(struct source *s, struct err *err);

/* *got: how many bytes there were, fewer than asked at the file's end. 0 or negative errno. */
int source_read(
    struct source *s, uint64_t offset, void *into, size_t bytes, size_t *got, struct err *err);

/* The first place at or after `offset` that may hold data: sparse files and reserved space are
 * stepped over. The size where there is none. */
uint64_t source_next_data(struct source *s, uint64_t offset);

#endif
