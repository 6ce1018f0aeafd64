/*
 * caching_allocator.h - a model of PyTorch's CUDACachingAllocator for one device: which block
 * serves a request, which segments are taken from the device for it and which are given back.
 * Deterministic and without I/O; the device is the caller's.
 *
 * Written from the behaviour of PyTorch 2.4 to 2.11; docs/allocator-model.md says what is modelled,
 * where it was read, and what differs between versions. One thread. A request costs the logarithm
 * of the free blocks; a flush what it gives back. Sizes and addresses are bytes.
 */
#ifndef ANALYZER_MODEL_CACHING_ALLOCATOR_H
#define ANALYZER_MODEL_CACHING_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/torch/caching_settings.h"

/* The level below, which decides where segments lie and when there is no more. */
struct caching_driver {
	void *arg;
	/* cudaMalloc: false when it refuses. */
	bool (*take)(void *arg, uint64_t size, uint64_t *address);
	void (*give)(void *arg, uint64_t address, uint64_t size);
	/* Addresses without memory for an expandable segment, and a page of memory there. */
	bool (*reserve)(void *arg, uint64_t size, uint64_t *address);
	void (*unreserve)(void *arg, uint64_t address, uint64_t size);
	bool (*map)(void *arg, uint64_t address, uint64_t size);
	void (*unmap)(void *arg, uint64_t address, uint64_t size);
};

struct caching_config {
	struct caching_settings settings;
	uint64_t memory; /* of the device: sizes the address space of expandable segments */
	uint64_t allowed; /* bytes that may be reserved; UINT64_MAX: no limit but the device's */
	struct caching_driver driver;
};

/* Free blocks are shared by the requests of one pool and stream. */
struct caching_where {
	uint64_t pool; /* 0: the default; another: private, as a CUDA graph's */
	uint64_t stream;
};

struct caching_block; /* lives until it is freed */
uint64_t caching_block_address(const struct caching_block *b);
uint64_t caching_block_size(const struct caching_block *b);
/* A number of the caller's own, 0 at first. */
uint64_t *caching_block_tag(struct caching_block *b);

struct caching_stats {
	uint64_t allocated, reserved;
	uint64_t idle; /* of reserved: what a flush would give back */
	uint64_t peak_allocated, peak_reserved;
	uint64_t segments; /* ever taken: segments, and pages of expandable ones */
};

struct caching_allocator;

int caching_allocator_new(const struct caching_config *config, struct caching_allocator **out);
void caching_allocator_free(struct caching_allocator *a); /* accepts NULL */

/* `size` as caching_round() gives it. 0; CACHING_REFUSED when there is no memory for it, also after
 * a flush; -ENOMEM. */
#define CACHING_REFUSED 1
int caching_allocator_request(struct caching_allocator *a, struct caching_where where,
    uint64_t size, struct caching_block **out);
void caching_allocator_release(struct caching_allocator *a, struct caching_block *b);
/* torch.cuda.empty_cache(); 0 or -ENOMEM. */
int caching_allocator_flush(struct caching_allocator *a);
/* The graphs that used that private pool are gone: flushes reach it from now on. */
void caching_allocator_retire_pool(struct caching_allocator *a, uint64_t pool);

void caching_allocator_stats(const struct caching_allocator *a, struct caching_stats *out);
/* Would the request be served without a new segment? Changes nothing. */
bool caching_allocator_would_hit(
    const struct caching_allocator *a, struct caching_where where, uint64_t size);
/* What would be asked of the device for a request that finds no free block. */
uint64_t caching_segment_size(const struct caching_settings *s, uint64_t size);
/* The largest free block for requests of that size, there. */
uint64_t caching_largest_hole(
    const struct caching_allocator *a, struct caching_where where, uint64_t size);

/* Invariants; aborts when one is broken. For tests. */
void caching_allocator_check(const struct caching_allocator *a);

#endif
