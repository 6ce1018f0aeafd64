/*
 * packed.h - reads and writes traces that `whyoom pack` compressed: frames of at most
 * PACKED_FRAME_MAX bytes, event chunks split into streams (packed_events.h), and a table of the
 * frames at the end, so that any offset is read by decompressing one frame (docs/trace-format.md,
 * section 10). The only user of zstd.
 *
 * The file is not trusted: frames must agree with the table. Memory is bounded by PACKED_KEPT
 * frames and the table. One thread.
 */
#ifndef ANALYZER_TRACE_PACKED_H
#define ANALYZER_TRACE_PACKED_H

#include <stddef.h>
#include <stdint.h>

#include "util/text/err.h"

#define PACKED_FRAME_MAX (1u << 20)
#define PACKED_KEPT 16u /* decompressed frames in the cache */

struct packed;

/* Open a file; *out is NULL if it is not packed. 0; negative errno with err: it is damaged, cut
 * off or of a newer version. */
int packed_open(
    int fd, uint64_t file_bytes, const char *path, struct packed **out, struct err *err);
void packed_close(struct packed *p);
/* Free the cached frames; the table stays. */
void packed_release(struct packed *p);
uint64_t packed_size(const struct packed *p); /* bytes of the trace */
uint64_t packed_file_bytes(const struct packed *p);

/* The end of the frame that holds an offset: if the frame is damaged, all of it up to there is. */
uint64_t packed_frame_end(const struct packed *p, uint64_t offset);

/* Read as source_read() does. -EIO: the frame that follows *got bytes is damaged. */
int packed_read(struct packed *p, int fd, uint64_t offset, void *into, size_t bytes, size_t *got,
    struct err *err);

/* Compress `bytes` bytes of `from` into `to`, both from offset 0. 0; negative errno with err,
 * whose text the caller prefixes with a path. */
int packed_write(int from, uint64_t bytes, int to, struct err *err);

#endif
