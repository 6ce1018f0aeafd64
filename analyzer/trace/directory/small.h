/*
 * small.h - files that hold the traces of many processes, each of which recorded little
 * (small.N.whyooms): what is in them, and the bytes of one trace as its own file would have them.
 * A record that is not whole is stepped over; what a record says of another one is not believed.
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

/* Bytes in a row that are of no whole record, and what the head of the first one says. A process
 * that was killed while it appended, or had no room to, left its own file beside it. */
struct small_torn {
	uint64_t bytes, start_real_ns;
	uint32_t pid, image; /* 0: there is no head */
};

struct small_list {
	VEC(struct small_place) places;
	VEC(struct small_torn) torn;
};

/* "small.N.whyooms"? */
bool small_is_name(const char *name);

/* All that the file has. 0 or negative errno with err filled. */
int small_list_read(const char *path, struct small_list *out, struct err *err);
void small_list_free(struct small_list *list);

/* One of them, as a trace. */
struct small;

/* 0 or negative errno with err filled: the record is not what it was, or contradicts itself. */
int small_open(
    int fd, const char *path, const struct small_place *place, struct small **out, struct err *err);
void small_close(struct small *s);

/* *got: how many bytes there were, fewer than asked at the trace's end. What no chunk has is zero.
 */
void small_read(const struct small *s, uint64_t offset, void *into, size_t bytes, size_t *got);

#endif
