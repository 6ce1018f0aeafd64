/*
 * packed_events.h - an event chunk of a trace as streams of one kind of byte each, which compress
 * far better than events in a row do, and the chunk made of them again, to the last byte
 * (docs/trace-format.md section 10). Addresses are told by what malloc does with them: a released
 * block by how many were acquired since it was, and one that takes the place of an earlier one of
 * its size by that. No compression here, no files.
 *
 * What is joined is as little trusted as any input: no stream is read beyond its end, nothing is
 * written beyond the chunk's.
 */
#ifndef ANALYZER_TRACE_PACKED_EVENTS_H
#define ANALYZER_TRACE_PACKED_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKED_CHUNK_MAX (1u << 20) /* larger ones are not split */

enum packed_stream {
	PACKED_LITERAL, /* the chunk's header, its end, and events with a length but for their tags
			 */
	PACKED_TAG,
	PACKED_TIME, /* dt, in one byte; 255: and in PACKED_TIME_MORE what it is beyond that */
	PACKED_TIME_MORE,
	PACKED_PLACE, /* of an ALLOC: how its address is told */
	PACKED_AGE, /* of a FREE: three planes, and what is beyond them */
	PACKED_ADDRESS = PACKED_AGE + 4, /* as it is in the trace, likewise */
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

/* 0: split, and joined again for a proof; 1: it is none that can be split (no event chunk, or one
 * that is damaged or written otherwise than the recorder does); -ENOMEM. */
int packed_split(const uint8_t *chunk, size_t bytes, struct packed_streams *out);

/* 0: `bytes` bytes are there; 1: the streams are of no such chunk; -ENOMEM. */
int packed_join(const struct packed_streams *s, uint8_t *chunk, size_t bytes);

#endif
