/*
 * small.h - reads files that hold the small traces of many processes (small.N.whyooms): their list,
 * and the bytes of one trace as a file of its own would have them. Torn records are skipped; a
 * record that refers to another one is checked.
 */
#ifndef ANALYZER_TRACE_SMALL_H
#define ANALYZER_TRACE_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/text/err.h"
#include "util/vec.h"

/* Where a trace lies. */
struct small_place {
	uint64_t offset, start_real_ns;
	uint32_t pid, image;
	uint32_t record_bytes, trace_bytes;
};

/* A stretch of bytes without a whole record, and what the head of its first record says. A process
 * that was killed while it appended, or found the disk full, left its own file beside this one. */
struct small_torn {
	uint64_t bytes, start_real_ns;
	uint32_t pid, image; /* 0: no head can be read */
};

struct small_list {
	VEC(struct small_place) places;
	VEC(struct small_torn) torn;
};

/* True: "small.N.whyooms". */
bool small_is_name(const char *name);

/* List all records of a file. 0 or negative errno with err. */
int small_list_read(const char *path, struct small_list *out, struct err *err);
void small_list_free(struct small_list *list);

/* One of the traces, opened. */
struct small;

/* Open and decode a trace. Negative errno with err: the record has changed or contradicts itself.
 */
int small_open(
    int fd, const char *path, const struct small_place *place, struct small **out, struct err *err);
void small_close(struct small *s);

/* Read as source_read() does. Bytes outside of chunks are 0. */
void small_read(const struct small *s, uint64_t offset, void *into, size_t bytes, size_t *got);

#endif
