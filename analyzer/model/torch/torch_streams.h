/*
 * torch_streams.h - finds which of PyTorch's segments share their free blocks. Block events carry
 * no stream, but best fit reveals it: a hole that was passed over, though it fits the request
 * better, belongs to another stream or to a private pool.
 */
#ifndef ANALYZER_MODEL_TORCH_STREAMS_H
#define ANALYZER_MODEL_TORCH_STREAMS_H

#include "model/torch/caching_allocator.h"
#include "model/torch/torch_record.h"

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

#endif
