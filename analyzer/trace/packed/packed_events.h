/*
 * packed_events.h - splits an event chunk into streams of one kind of byte each, which compress far
 * better than the events in a row, and joins them to the same bytes again (docs/trace-format.md,
 * section 10). An address is coded by what malloc does: a released block by its age, a block that
 * reuses the address of a released one of its size by that. No compression and no files here.
 *
 * Streams are not trusted: joining reads no stream beyond its end and writes nothing beyond the
 * chunk's.
 */
#ifndef ANALYZER_TRACE_PACKED_EVENTS_H
#define ANALYZER_TRACE_PACKED_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKED_CHUNK_MAX (1u << 20) /* larger ones are not split */

enum packed_stream {
	PACKED_LITERAL, /* the chunk's header and end, and events with a length without tags */
	PACKED_TAG,
	PACKED_TIME, /* dt in a byte; 255: the rest is in PACKED_TIME_MORE */
	PACKED_TIME_MORE,
	PACKED_PLACE, /* of an ALLOC: how its address is coded */
	PACKED_AGE, /* of a FREE: three planes, and the rest */
	PACKED_ADDRESS = PACKED_AGE + 4, /* as in the trace, in four streams, too */
	PACKED_SIZE = PACKED_ADDRESS + 4,
	PACKED_STACK = PACKED_SIZE + 4,
	PACKED_STREAMS = PACKED_STACK + 4
};

struct packed_bytes {
	uint8_t *data; /* owned */
	size_t length, room;
};

/* Zeroed at first. */
struct packed_streams {
	struct packed_bytes of[PACKED_STREAMS];
};
void packed_streams_fini(struct packed_streams *s);

/* Split a chunk, and join the streams again as a check. 0; 1: it cannot be split (no event chunk,
 * damaged, or not as the recorder writes it); -ENOMEM. */
int packed_split(const uint8_t *chunk, size_t bytes, struct packed_streams *out);

/* Write a chunk of `bytes` bytes. 0; 1: the streams do not make such a chunk; -ENOMEM. */
int packed_join(const struct packed_streams *s, uint8_t *chunk, size_t bytes);

#endif
