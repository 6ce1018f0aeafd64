/*
 * sink.h - where an exporter's bytes go: a buffer before a descriptor, on request compressed by
 * gzip. An error stays: later bytes are dropped, and the caller checks `failed` now and then.
 */
#ifndef ANALYZER_EXPORT_SINK_H
#define ANALYZER_EXPORT_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/text/str.h"

struct sink {
	int fd; /* the caller's */
	int failed; /* 0, or the negative errno of the first error */
	uint64_t bytes; /* written so far, before compression: the offset in the format's terms */
	/* private */
	char *buffer;
	size_t used;
	struct z_stream_s *gzip; /* NULL: as it is */
};

/* 0 or -ENOMEM. Call sink_fini() after both. */
int sink_init(struct sink *s, int fd, bool gzip);
void sink_put(struct sink *s, const void *data, size_t bytes);
void sink_puts(struct sink *s, const char *text);
void sink_printf(struct sink *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Write the text and clear it; its `failed` becomes the sink's. */
void sink_str(struct sink *s, struct str *text);
/* Write what is buffered, and end the compression. Returns `failed`. */
int sink_finish(struct sink *s);
void sink_fini(struct sink *s);

#endif
