/*
 * stream.h - one thread's events in the order of its chunks, decoded in batches. Knows the wire
 * format of events; does not know which blocks live.
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

/* A chunk header as it was when the file was opened; the body is read as far as `readable`. */
struct chunk {
	uint64_t offset, ticks, mono_ns, checksum;
	uint32_t bytes; /* of the chunk, those beyond the file's end counted */
	uint32_t readable; /* bytes of the body that are committed and there */
	uint32_t committed; /* as the header says */
	uint32_t thread, tid, sequence;
	uint8_t type, side_count;
	bool sealed, torn;
	bool counted; /* the tear was seen, and counted, when the file was opened */
	bool noted; /* all of it is known to be damaged */
	bool distrusted; /* its header is not what was written: its events are not read */
	bool checked; /* decoded once: checksum and tears are known */
};

/* One decoded event. */
#define REC_APPLIED 0u /* a release that was applied ahead of its turn */
#define REC_UNKNOWN 254u /* a kind of a newer version, or a reserved one */
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
	float mean; /* TRACE_ALLOC: as of struct block */
};
#define REC_EXTENDED 255u

/* What all streams of a file share. */
struct stream_context {
	struct source *source;
	struct defs *defs;
	const struct live *live; /* for prefetching */
	struct chunk *chunks;
	uint32_t (*thread_index)(void *arg, uint32_t serial, uint32_t tid);
	void *arg;
	bool skip_blocks; /* malloc's kin is left out */
	uint64_t floor; /* of all streams but the checkpoint's */
	size_t window; /* bytes read at once */
	uint32_t gaps_room; /* as of struct gaps */
	struct damage *damage;
	const bool *checks; /* events of chunks that are not sealed have a sum */
	const bool *running; /* which changes while it is read, then */
	uint64_t bytes_read;
	uint64_t slack; /* ticks by which threads' clocks may differ */
	uint64_t stacks_named, stacks_undefined; /* by events of all passes */
	uint64_t torn_chunks, bad_checksums, unknown_records;
};

/* The ALLOC that followed a stack in the chunk. */
struct expected {
	uint64_t size;
	uint32_t stack, canonical;
};

struct stream {
	uint32_t first, count; /* of the context's chunks */
	uint32_t next; /* the chunk to open, counted from first */
	bool in_chunk, ended;
	uint32_t thread;

	/* The decoded events that wait: queue[head] to queue[tail - 1]. */
	struct rec *queue;
	uint32_t head, tail, capacity;
	uint64_t last_ticks; /* of the last one decoded: time never runs backwards here */
	uint64_t floor; /* events of fewer ticks do not count */
	uint64_t deferred; /* merge.c: events counted when its head was last let wait, plus 1 */

	/* The chunk being decoded. */
	uint8_t *window;
	size_t window_bytes, window_capacity, at; /* window[at] is the next event */
	uint64_t unread; /* bytes of the body that are not in the window */
	uint64_t read_offset;
	uint64_t ticks, address;
	uint64_t latest; /* ticks: later than the thread's next chunk began no event can be */
	uint32_t stack, canonical; /* of the last ALLOC, as written and as it is known */
	struct expected *expected; /* TRACE_EXPECTED_PLACES */
	struct xxh64 hash;
	struct rec *sides;
	uint32_t side_at, side_count;
	struct gaps gaps;
};

/* Decodes until at least one more event waits, or the stream has ended (0 and no more events).
 * Negative errno. A chunk that contradicts the format ends there and is counted. */
int stream_more(struct stream *s, struct stream_context *ctx, struct err *err);
/* Back to the first event. */
void stream_rewind(struct stream *s, const struct stream_context *ctx);
void stream_fini(struct stream *s);

#endif
