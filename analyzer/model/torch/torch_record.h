/*
 * torch_record.h - the events of one device as PyTorch's allocator went through them: its requests
 * and releases, each with what it did to the device before. The parts of a replay read the feed
 * through this; nobody else.
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
	TORCH_REFUSE, /* it, or a page, was refused for want of memory */
	TORCH_GIVE, /* cudaFree of a segment of PyTorch's */
	TORCH_RESERVE, /* addresses of an expandable segment */
	TORCH_MAP, /* a page there */
	TORCH_UNMAP,
};

struct torch_call {
	enum torch_call_kind kind;
	bool used; /* by the step's own request; the reader's to set */
	uint32_t thread, segment;
	uint64_t address, size;
};

/* A segment, or an expandable one's addresses, in the order in which they were made; also those of
 * other libraries, which have no blocks. */
struct torch_segment {
	uint64_t address, size;
	uint64_t mapped; /* of a range */
	bool range, live;
	bool torch; /* a block was seen in it */
	bool small; /* its blocks are of the small pools */
};
#define TORCH_NO_SEGMENT UINT32_MAX

enum torch_step_kind {
	TORCH_NOTHING, /* nothing that the allocator did: a level, or another space */
	TORCH_REQUEST, /* granted, or refused: block.refused */
	TORCH_RELEASE,
};

struct torch_step {
	enum torch_step_kind kind;
	struct torch_block block; /* RELEASE: address, thread and time only */
	uint32_t segment; /* REQUEST: where the block lies */
	uint64_t asked; /* REQUEST: bytes, as far as the block and its segment tell */
	/* What PyTorch said last before it; a refusal says it, too, and after the flush. */
	uint64_t reserved;
	bool reserved_known;
};

struct torch_record {
	struct feed feed;
	char cuda_name[32], torch_name[32];
	uint32_t cuda, torch, va; /* ids of spaces, 0: not met yet */

	struct ranges layout; /* live segments; serial: index */
	VEC(struct torch_segment) segments;
	struct map handles; /* to bytes */
	VEC(struct torch_call) calls; /* since the step before */
	VEC(uint32_t) died; /* segments that went since then, given back or not */
	bool stale; /* both are of the step that was told last */

	uint64_t requests;
	uint64_t reserved; /* as PyTorch said last */
	bool reserved_known;
	uint64_t driver_bytes, torch_bytes; /* taken of the device; of them PyTorch's segments */
	uint64_t memory; /* the device's */
	uint64_t unexplained; /* what the driver counts as used, and no event explains */
	int error;
};

void torch_record_init(struct torch_record *r, struct feed feed, uint32_t device);
void torch_record_fini(struct torch_record *r);
/* 0 or -ENOMEM. r->calls are those that led to the step, until the next event. */
int torch_record_event(struct torch_record *r, const struct event *e, struct torch_step *step);
/* The least that may have been asked for when a block of that size was given: what is left over of
 * a segment may stay with the block. */
uint64_t torch_record_least(const struct caching_settings *s, uint64_t size);
/* Sets step->asked of a request, by the settings of the record. */
void torch_record_ask(
    const struct torch_record *r, const struct caching_settings *s, struct torch_step *step);
/* What the allocator could reserve of a device with so much memory, of which others gave so much
 * back. */
uint64_t torch_record_room(const struct torch_record *r, uint64_t memory, uint64_t given_back);

#endif
