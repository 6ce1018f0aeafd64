/*
 * torch_parts.h - what the files of a replay share among themselves: the record as PyTorch's
 * allocator saw it, its streams, and one run of the allocator's model along it.
 */
#ifndef ANALYZER_MODEL_TORCH_PARTS_H
#define ANALYZER_MODEL_TORCH_PARTS_H

#include "model/torch/caching_allocator.h"
#include "model/torch/torch_replay.h"
#include "util/map.h"
#include "util/ranges.h"
#include "util/vec.h"

/* --- torch_record.c --- */

/* One device's events as PyTorch's allocator saw them: its requests and releases, each with the
 * device calls before it. */

enum torch_call_kind {
	TORCH_TAKE, /* cudaMalloc */
	TORCH_REFUSE, /* a refused cudaMalloc, or page, for want of memory */
	TORCH_GIVE, /* cudaFree of one of PyTorch's segments */
	TORCH_RESERVE, /* reserve the addresses of an expandable segment */
	TORCH_MAP, /* map a page there */
	TORCH_UNMAP,
};

struct torch_call {
	enum torch_call_kind kind;
	bool used; /* the step's own request used it; set by the reader */
	uint32_t thread, segment;
	uint64_t address, size;
};

/* A segment, or the addresses of an expandable one, in the order of creation. Other libraries'
 * segments are here, too; they have no blocks. */
struct torch_segment {
	uint64_t address, size;
	uint64_t mapped; /* of an expandable segment */
	bool range, live;
	bool torch; /* a block was seen in it */
	bool small; /* its blocks are of the small pools */
};
#define TORCH_NO_SEGMENT UINT32_MAX

enum torch_step_kind {
	TORCH_NOTHING, /* not the allocator's: a level, or another space */
	TORCH_REQUEST, /* granted; or refused: block.refused */
	TORCH_RELEASE,
};

struct torch_step {
	enum torch_step_kind kind;
	struct torch_block block; /* RELEASE: only address, thread and time */
	uint32_t segment; /* REQUEST: the block's segment */
	uint64_t asked; /* REQUEST: bytes, as far as the block and its segment show */
	/* The latest value from PyTorch before the step; for a refusal its own, after the flush. */
	uint64_t reserved;
	bool reserved_known;
};

struct torch_record {
	struct feed feed;
	char cuda_name[32], torch_name[32];
	uint32_t cuda, torch, va; /* ids of spaces; 0: not met yet */

	struct ranges layout; /* live segments; serial: index */
	VEC(struct torch_segment) segments;
	struct map handles; /* handle to bytes */
	VEC(struct torch_call) calls; /* since the previous step */
	VEC(uint32_t) died; /* segments that disappeared since then, released or not */
	bool stale; /* both lists belong to the previous step */

	uint64_t requests;
	uint64_t reserved; /* PyTorch's latest value */
	bool reserved_known;
	uint64_t driver_bytes, torch_bytes; /* taken from the device; of that, PyTorch's segments */
	uint64_t memory; /* the device's */
	uint64_t unexplained; /* used by the driver's count, and not explained by events */
	int error;
};

void torch_record_init(struct torch_record *r, struct feed feed, uint32_t device);
void torch_record_fini(struct torch_record *r);
/* Apply an event. 0 or -ENOMEM. r->calls are the calls before the step, until the next event. */
int torch_record_event(struct torch_record *r, const struct event *e, struct torch_step *step);
/* Return the least request that fits such a block: a segment's rest may stay with the block. */
uint64_t torch_record_least(const struct caching_settings *s, uint64_t size);
/* Set step->asked of a request, under the record's settings. */
void torch_record_ask(
    const struct torch_record *r, const struct caching_settings *s, struct torch_step *step);
/* Return the bytes that the allocator could reserve on a device with `memory` bytes, after others
 * gave back `given_back`. */
uint64_t torch_record_room(const struct torch_record *r, uint64_t memory, uint64_t given_back);

/* --- torch_streams.c --- */

/* Which segments share their free blocks? Block events carry no stream, but best fit reveals it: a
 * hole that was passed over, though it fits the request better, belongs to another stream or to a
 * private pool. */
struct torch_label {
	uint32_t stream;
	bool is_private; /* flushes do not reach it: a CUDA graph's pool, or the program's */
};

struct torch_streams {
	VEC(struct torch_label) labels; /* by segment of torch_record */
	uint32_t count; /* streams and pools told apart */
	uint64_t memory; /* of the device; 0: unknown */
	/* The limit of reserved bytes: PyTorch refused without a call. UINT64_MAX: none. */
	uint64_t allowed;
};

/* Find the streams in one pass over the feed, from its start. 0, or negative with err. */
int torch_streams_find(struct feed feed, uint32_t device, const struct caching_settings *settings,
    struct torch_streams *out, struct err *err);
void torch_streams_fini(struct torch_streams *s);

/* Return the pool and stream of a request whose block lies in that segment. */
struct caching_where torch_streams_where(const struct torch_streams *s, uint32_t segment);

/* --- torch_trial.c --- */

/* One run of the allocator's model along the record: the plain run, whose device does what the
 * record shows, or a changed run, whose device has a given size. */
struct torch_due {
	uint64_t time_ns, address, tag;
	uint32_t late; /* 1 + index of its torch_late; 0: the block at the address */
	bool ask; /* a request; false: a release */
	bool end; /* end of a block's work: it may be released */
};

/* A block that is requested later than recorded. */
struct torch_late {
	struct torch_step step;
	struct caching_where where;
	struct caching_block *block; /* NULL: not live */
	uint64_t delay, end;
	bool gone; /* released, perhaps before it was requested */
};

struct torch_trial {
	struct torch_record *record;
	const struct torch_streams *streams;
	const struct torch_change *change; /* NULL: the plain run */
	struct caching_settings settings;
	bool same_split; /* blocks may be split as in the record */
	struct caching_allocator *allocator;
	struct map held; /* recorded address to block */
	VEC(struct torch_due) due; /* a heap, the earliest first */
	VEC(struct torch_late) late;
	struct map late_at; /* recorded address to 1 + index, until the recorded release */
	uint32_t asking; /* 1 + index of the current request; 0: the step's own */

	/* The device. */
	struct ranges taken;
	uint64_t first_address; /* it takes nothing below; 0: none was taken */
	uint64_t next_address; /* for allocations without a recorded address */
	uint64_t full_size, full_until; /* no room for full_size below full_until; 0: unknown */
	bool parted; /* the taken addresses differ from the recorded ones */
	uint64_t used, room;
	uint64_t memory, allowed;

	/* The current step. */
	const struct torch_step *step;
	struct caching_where where;
	uint64_t end; /* of its work, in ns after its block's request; UINT64_MAX: unknown */

	bool stopped;
	struct torch_outcome outcome;

	/* The plain run: where it first differs from the record. */
	bool differs;
	uint64_t recorded, modelled;
};

int torch_trial_init(struct torch_trial *t, struct torch_record *record,
    const struct torch_streams *streams, const struct caching_settings *settings,
    const struct torch_change *change);
void torch_trial_fini(struct torch_trial *t);

/* Try one step. `flush`: the program emptied the cache before it. `least`: room that the device is
 * known to have had, 0: unknown. 0 or -ENOMEM. */
int torch_trial_step(struct torch_trial *t, const struct torch_step *step,
    struct caching_where where, bool flush, uint64_t least);
/* Retire a private pool whose graphs are gone. */
void torch_trial_retire(struct torch_trial *t, uint64_t pool);
/* 0 or -ENOMEM. */
int torch_trial_finish(struct torch_trial *t);

#endif
