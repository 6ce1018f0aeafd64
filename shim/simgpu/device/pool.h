/*
 * pool.h - stream-ordered memory: pools of segments. A pool grows when a request does not fit and
 * keeps freed memory; it releases unused segments when it is trimmed, or when a stream, event or
 * context is synchronised and it keeps more than the release threshold.
 *
 * Any stream can reuse freed memory at once, as nothing runs on the simulated device. Pre: the
 * caller holds the model's lock.
 */
#ifndef SIMGPU_POOL_H
#define SIMGPU_POOL_H

#include "simgpu/device/state.h"

#define POOL_SEGMENT_BYTES (32ull << 20) /* a segment, unless the request is larger */

struct pool {
	struct object head;
	struct pool *next;
	struct pool_segment *segments;
	struct spans unused; /* struct pool_gap */
	uint64_t threshold, most; /* most: maxSize; 0: unbounded */
	uint64_t reserved, reserved_high, used, used_high;
	int reuse[4]; /* attributes 1 to 3: stored, without effect */
	bool standard;
};

struct pool *pool_default(int device); /* NULL: no memory */
struct pool *pool_current(int device);
void pool_set_current(int device, struct pool *pool);
struct pool *pool_new(int device, uint64_t most);
/* Destroys a pool; blocks in use stay until they are freed. */
void pool_destroy(struct pool *pool);

int pool_alloc(struct pool *pool, uint64_t bytes, struct block **out);
void pool_free(struct block *block);
void pool_trim(struct pool *pool, uint64_t keep);
/* Trims each pool of the device to its threshold, after a synchronisation. */
void pool_after_synchronise(int device);
/* Releases all unused memory of the device's pools, when memory is short. */
void pool_release_unused(int device);

#endif
