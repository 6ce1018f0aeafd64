/*
 * stream.h - decodes one thread's events in batches, in the order of its chunks. Knows the wire
 * format of events, and not which blocks are live.
 */
#ifndef ANALYZER_TRACE_STREAM_H
#define ANALYZER_TRACE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/definitions/definitions.h"
#include "trace/directory/source.h"
#include "trace/event.h"
#include "trace/extended.h"
#include "trace/integrity/damage.h"
#include "trace/integrity/gaps.h"
#include "trace/live.h"
#include "trace/xxh64.h"
#include "util/text/err.h"

/* A chunk header, as read when the file was opened. */
struct chunk {
	uint64_t offset, ticks, mono_ns, checksum;
	uint32_t bytes; /* of the chunk, even beyond the end of the file */
	uint32_t readable; /* committed bytes of the body that the file has */
	uint32_t committed; /* as the header says */
	uint32_t thread, tid, sequence;
	uint8_t type, side_count;
	bool sealed, torn;
	bool counted; /* `torn` was counted when the file was opened */
	bool noted; /* reported as damaged as a whole */
	bool distrusted; /* its header has changed: its events are not read */
	bool checked; /* decoded once, so its damage is known */
};

/* One decoded event. */
#define REC_APPLIED 0u /* already applied, ahead of its turn */
#define REC_UNKNOWN 254u /* a kind of a newer version */
struct rec {
	uint64_t ticks, address;
	union {
		uint64_t size;
		struct extended *extended; /* of REC_EXTENDED: its owner frees it */
	};
	uint32_t stack; /* canonical */
	uint32_t thread; /* index into the trace's threads */
	uint8_t kind; /* TRACE_ALLOC, TRACE_FREE, TRACE_UNFREE, TRACE_TASK, TRACE_TASK_END, REC_*:
			 the key of a task is its address */
	uint8_t api;
	bool realloc; /* TRACE_FREE: the releasing half */
	float mean; /* TRACE_ALLOC: as in struct block */
};
#define REC_EXTENDED 255u

/* State that all streams of a file share. */
struct stream_context {
	struct source *source;
	struct defs *defs;
	const struct live *live; /* for prefetching */
	struct chunk *chunks;
	uint32_t (*thread_index)(void *arg, uint32_t serial, uint32_t tid);
	void *arg;
	bool skip_blocks; /* leave ALLOC, FREE and UNFREE out */
	uint64_t floor; /* of all streams but the checkpoint's */
	size_t window; /* bytes to read at once */
	uint32_t gaps_room; /* see struct gaps */
	struct damage *damage;
	const bool *checks; /* unsealed chunks have a sum of their events */
	const bool *running; /* the file may grow while it is read */
	bool follow; /* wait at the end of a chunk that is still written to */
	uint64_t bytes_read;
	uint64_t slack; /* ticks by which clocks of threads may differ */
	uint64_t stacks_named, stacks_undefined; /* stack fields of events, over all passes */
	uint64_t torn_chunks, bad_checksums, unknown_records;
};

/* What followed a stack in the chunk: the predicted next ALLOC. */
struct expected {
	uint64_t size;
	uint32_t stack, canonical;
};

struct stream {
	uint32_t first, count; /* of the context's chunks */
	uint32_t next; /* the chunk to open, counted from first */
	bool in_chunk, ended;
	uint32_t thread;

	/* Decoded events: queue[head] to queue[tail - 1]. */
	struct rec *queue;
	uint32_t head, tail, capacity;
	uint64_t last_ticks; /* of the last decoded event; never falls */
	uint64_t floor; /* earlier events are dropped */
	uint64_t deferred; /* merge.c: count of events, plus 1, when it was last deferred */

	/* The chunk being decoded. */
	uint8_t *window;
	size_t window_bytes, window_capacity, at; /* window[at] is the next event */
	uint64_t unread; /* bytes of the body beyond the window */
	uint64_t read_offset;
	uint64_t ticks, address;
	uint64_t latest; /* ticks: begin of the thread's next chunk; no event can be later */
	uint32_t stack, canonical; /* of the last ALLOC, as written and canonical */
	struct expected *expected; /* TRACE_EXPECTED_PLACES */
	struct xxh64 hash;
	struct rec *sides;
	uint32_t side_at, side_count;
	struct gaps gaps;
};

/* Decode at least one more event, unless the stream has ended. 0 or negative errno. A chunk that
 * contradicts the format ends there and counts as torn. */
int stream_more(struct stream *s, struct stream_context *ctx, struct err *err);
/* Go on after the context's chunks were listed again: `first` and `count` are set, and the chunk
 * that is being decoded had `readable` bytes before. */
void stream_resume(struct stream *s, const struct stream_context *ctx, uint32_t readable);
/* Go back to the first event. */
void stream_rewind(struct stream *s, const struct stream_context *ctx);
void stream_fini(struct stream *s);

#endif
