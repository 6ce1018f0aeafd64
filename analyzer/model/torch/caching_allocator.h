/*
 * caching_allocator.h - a model of PyTorch's CUDACachingAllocator for one device: which block
 * serves a request, which segments it takes from the device and which it gives back. Deterministic
 * and without I/O; the caller supplies the device.
 *
 * Follows PyTorch 2.4 to 2.11; docs/allocator-model.md says what is modelled, where it was read,
 * and what differs between versions. One thread. A request costs the logarithm of the number of
 * free blocks; a flush costs as much as it gives back. Sizes and addresses are in bytes.
 */
#ifndef ANALYZER_MODEL_CACHING_ALLOCATOR_H
#define ANALYZER_MODEL_CACHING_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "model/torch/caching_set.h"
#include "model/torch/caching_settings.h"

/* The device below: it decides where segments lie and when memory runs out. */
struct caching_driver {
	void *arg;
	/* Do cudaMalloc. False: refused. */
	bool (*take)(void *arg, uint64_t size, uint64_t *address);
	void (*give)(void *arg, uint64_t address, uint64_t size);
	/* Reserve addresses for an expandable segment; map a page of memory there. */
	bool (*reserve)(void *arg, uint64_t size, uint64_t *address);
	void (*unreserve)(void *arg, uint64_t address, uint64_t size);
	bool (*map)(void *arg, uint64_t address, uint64_t size);
	void (*unmap)(void *arg, uint64_t address, uint64_t size);
};

struct caching_config {
	struct caching_settings settings;
	uint64_t memory; /* of the device: it sizes the addresses of expandable segments */
	uint64_t allowed; /* bytes that may be reserved; UINT64_MAX: only the device limits */
	struct caching_driver driver;
};

/* Requests of one pool and stream share free blocks. */
struct caching_where {
	uint64_t pool; /* 0: the default; else private, as a CUDA graph's */
	uint64_t stream;
};

struct caching_stats {
	uint64_t allocated, reserved;
	uint64_t idle; /* part of reserved that a flush would give back */
	uint64_t peak_allocated, peak_reserved;
	uint64_t segments; /* taken so far: segments, and pages of expandable ones */
};

struct caching_allocator;

int caching_allocator_new(const struct caching_config *config, struct caching_allocator **out);
void caching_allocator_free(struct caching_allocator *a); /* accepts NULL */

/* Serve a request; `size` comes from caching_round(). 0; CACHING_REFUSED when there is no memory
 * for it even after a flush; -ENOMEM. */
#define CACHING_REFUSED 1
int caching_allocator_request(struct caching_allocator *a, struct caching_where where,
    uint64_t size, struct caching_block **out);
void caching_allocator_release(struct caching_allocator *a, struct caching_block *b);
/* Do torch.cuda.empty_cache(). 0 or -ENOMEM. */
int caching_allocator_flush(struct caching_allocator *a);
/* Retire a private pool: its graphs are gone, so flushes reach it from now on. */
void caching_allocator_retire_pool(struct caching_allocator *a, uint64_t pool);

void caching_allocator_stats(const struct caching_allocator *a, struct caching_stats *out);
/* True if the request would be served without a new segment. Changes nothing. */
bool caching_allocator_would_hit(
    const struct caching_allocator *a, struct caching_where where, uint64_t size);
/* Return the size to ask of the device for a request that finds no free block. */
uint64_t caching_segment_size(const struct caching_settings *s, uint64_t size);
/* Return the largest free block for requests of that size, at `where`. */
uint64_t caching_largest_hole(
    const struct caching_allocator *a, struct caching_where where, uint64_t size);

/* Check the invariants; abort if one is broken. For tests. */
void caching_allocator_check(const struct caching_allocator *a);

#endif
