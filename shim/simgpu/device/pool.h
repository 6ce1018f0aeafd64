/*
 * pool.h - stream-ordered memory: pools of segments, which grow when a request does not fit, keep
 * what was freed, and let go of it when they are trimmed or when a stream, event or context is
 * synchronised and more is kept than the release threshold. Under the model's lock.
 *
 * What was freed can be had again at once, by any stream: nothing runs on the simulated device.
 */
#ifndef SIMGPU_POOL_H
#define SIMGPU_POOL_H

#include "simgpu/device/state.h"

#define POOL_GROWTH (32ull << 20) /* a segment, unless the request is larger */

struct pool {
	struct object head;
	struct pool *next;
	struct pool_segment *segments;
	struct spans unused; /* struct pool_gap */
	uint64_t threshold, most; /* most: maxSize, 0: none */
	uint64_t reserved, reserved_high, used, used_high;
	int reuse[4]; /* attributes 1 to 3: kept, without effect */
	bool standard;
};

struct pool *pool_default(int device); /* NULL: no memory */
struct pool *pool_current(int device);
void pool_set_current(int device, struct pool *pool);
struct pool *pool_new(int device, uint64_t most);
/* What is still in use stays until it is freed. */
void pool_destroy(struct pool *pool);

int pool_alloc(struct pool *pool, uint64_t bytes, struct block **out);
void pool_free(struct block *block);
void pool_trim(struct pool *pool, uint64_t keep);
/* After a synchronisation: each pool of the device back to its threshold. */
void pool_synchronised(int device);
/* Memory is short: whatever pools of the device keep unused. */
void pool_squeeze(int device);

#endif
