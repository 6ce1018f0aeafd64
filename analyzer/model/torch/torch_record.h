/*
 * torch_record.h - one device's events as PyTorch's allocator saw them: its requests and releases,
 * each with the device calls before it. Only the parts of a replay read the feed through this.
 */
#ifndef ANALYZER_MODEL_TORCH_RECORD_H
#define ANALYZER_MODEL_TORCH_RECORD_H

#include "model/feed.h"
#include "model/torch/torch_replay.h"
#include "util/map.h"
#include "util/ranges.h"
#include "util/vec.h"

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

#endif
