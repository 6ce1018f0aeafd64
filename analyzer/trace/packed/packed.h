/*
 * packed.h - traces that `whyoom pack` has compressed: frames of at most PACKED_FRAME_MAX bytes
 * each, chunks of events in streams (packed_events.h), and a table of them at the end, so that any
 * place is read by decompressing one frame (docs/trace-format.md section 10; version 1 is zstd's
 * seekable format). Here and nowhere else zstd is known.
 *
 * A packed file is as little trusted as any: frames and table must say the same, memory is bounded
 * by PACKED_KEPT frames and the table. One thread.
 */
#ifndef ANALYZER_TRACE_PACKED_H
#define ANALYZER_TRACE_PACKED_H

#include <stddef.h>
#include <stdint.h>

#include "util/text/err.h"

#define PACKED_FRAME_MAX (1u << 20)
#define PACKED_KEPT 16u /* frames that are held decompressed */

struct packed;

/* What the file is: *out is NULL where it is not packed. 0; negative errno with err, which names
 * `path`: it is damaged, cut off or of a newer version. */
int packed_open(
    int fd, uint64_t file_bytes, const char *path, struct packed **out, struct err *err);
void packed_close(struct packed *p);
/* Gives the frames back; the table stays. */
void packed_rest(struct packed *p);
uint64_t packed_size(const struct packed *p); /* bytes of the trace */
uint64_t packed_file_bytes(const struct packed *p);

/* Where the frame ends that the offset is in; a place that is damaged is so up to there. */
uint64_t packed_frame_end(const struct packed *p, uint64_t offset);

/* As source_read(). -EIO: the frame behind *got is damaged. */
int packed_read(struct packed *p, int fd, uint64_t offset, void *into, size_t bytes, size_t *got,
    struct err *err);

/* Compresses `bytes` of `from` into `to`; they are what packed_open() takes. Both from their
 * beginning. 0; negative errno with err, whose words need a name before them. */
int packed_write(int from, uint64_t bytes, int to, struct err *err);

#endif
