/*
 * source.h - reads the bytes of one trace file, by offset into the caller's buffers. A mapping
 * would kill the reader by SIGBUS if the file is truncated or its disk fails, and would count as
 * memory.
 */
#ifndef ANALYZER_TRACE_SOURCE_H
#define ANALYZER_TRACE_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/directory/small.h"
#include "util/text/err.h"

struct packed;

struct source {
	char *path;
	int fd; /* -1: the next read opens it again */
	uint64_t size; /* of the trace, which is larger than a packed file */
	struct packed *packed; /* NULL: not packed */
	char *shared; /* the file of small traces that holds it; NULL: a file of its own */
	struct small_place place; /* in that file */
	struct small *small; /* its bytes, while the file is open */
	dev_t device;
	ino_t inode;
	/* If set: unreadable bytes are read as zeros and reported here. */
	void (*unreadable)(void *arg, uint64_t offset, uint64_t bytes);
	void *arg;
};

/* Open a file, or a small trace within the file `shared`, which may be NULL; then `path` is the
 * name that its own file would have. 0; -EISDIR; -EINVAL: not a regular file; the errors of open().
 */
int source_open(struct source *s, const char *path, const char *shared,
    const struct small_place *place, struct err *err);
/* Close the descriptor until the next read, as a directory may hold thousands of traces. */
void source_release(struct source *s);
void source_close(struct source *s);
/* Read the size again, as the process may be running. 0 or negative errno. */
int source_refresh(struct source *s, struct err *err);

/* Read; *got is less than `bytes` only at the end of the file. 0 or negative errno. */
int source_read(
    struct source *s, uint64_t offset, void *into, size_t bytes, size_t *got, struct err *err);

/* The first offset from `offset` on that may hold data, past holes and reserved space; the size if
 * none does. */
uint64_t source_next_data(struct source *s, uint64_t offset);

#endif
