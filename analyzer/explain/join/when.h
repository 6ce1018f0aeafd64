/*
 * when.h - the time that a log's line begins with, in the formats in use.
 */
#ifndef ANALYZER_EXPLAIN_WHEN_H
#define ANALYZER_EXPLAIN_WHEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum when_clock {
	WHEN_UNKNOWN,
	WHEN_WALL, /* a date and a time of day */
	WHEN_DAY, /* a time of day without a date */
	WHEN_UPTIME, /* seconds since the system started */
};

struct when {
	enum when_clock clock;
	bool year; /* of WHEN_WALL: is it known? Else it counts as 1970. */
	int64_t ns; /* since 1970, midnight or the start */
	size_t at, bytes; /* of the text, in the line */
};

struct whens;

/* NULL: no memory. */
struct whens *whens_new(void);
void whens_free(struct whens *whens);
/* False: the line names no time. Only its first 256 bytes are looked at. */
bool whens_read(struct whens *whens, const char *line, size_t bytes, struct when *out);

#endif
