/*
 * pool.c - see pool.h.
 */
#include "simgpu/device/pool.h"

#include "simgpu/device/heap.h"

struct pool_segment {
	struct pool_segment *next;
	struct pool *pool;
	struct phys *phys;
	uint64_t start;
	uint64_t used;
};

struct pool_gap {
	struct span span; /* first member */
	struct pool_segment *segment;
};

static struct pool *pools, *defaults[SIMGPU_DEVICES], *current[SIMGPU_DEVICES];

struct pool *pool_new(int device, uint64_t most)
{
	struct pool *pool = object_new(OBJECT_POOL, device, sizeof(*pool));

	if (!pool)
		return NULL;
	pool->most = most;
	for (int i = 1; i < 4; i++)
		pool->reuse[i] = 1;
	pool->next = pools;
	pools = pool;
	return pool;
}

struct pool *pool_default(int device)
{
	if (!defaults[device]) {
		defaults[device] = pool_new(device, 0);
		if (defaults[device])
			defaults[device]->standard = true;
	}
	return defaults[device];
}

struct pool *pool_current(int device)
{
	return current[device] ? current[device] : pool_default(device);
}

void pool_set_current(int device, struct pool *pool)
{
	current[device] = pool;
}

static void gap_add(struct pool_segment *segment, uint64_t start, uint64_t size)
{
	struct spans *unused = &segment->pool->unused;
	struct pool_gap *low = (struct pool_gap *)spans_find_before(unused, start);
	struct pool_gap *high = (struct pool_gap *)spans_find_from(unused, start + size), *gap;

	if (!size)
		return;
	if (low && low->segment == segment && low->span.start + low->span.size == start) {
		start = low->span.start;
		size += low->span.size;
		spans_remove(unused, &low->span);
		heap_free(low, sizeof(*low));
	}
	if (high && high->segment == segment && high->span.start == start + size) {
		size += high->span.size;
		spans_remove(unused, &high->span);
		heap_free(high, sizeof(*high));
	}
	gap = heap_new(sizeof(*gap));
	if (!gap)
		return;
	gap->segment = segment;
	gap->span.start = start;
	gap->span.size = size;
	spans_insert(unused, &gap->span);
}

static void segment_free(struct pool_segment *segment)
{
	struct pool *pool = segment->pool;
	struct span *gap = spans_find(&pool->unused, segment->start);

	if (gap) {
		spans_remove(&pool->unused, gap);
		heap_free(gap, sizeof(struct pool_gap));
	}
	for (struct pool_segment **at = &pool->segments; *at; at = &(*at)->next)
		if (*at == segment) {
			*at = segment->next;
			break;
		}
	pool->reserved -= segment->phys->bytes;
	addresses_release(segment->start, segment->phys->bytes);
	phys_free(segment->phys);
	heap_free(segment, sizeof(*segment));
}

void pool_trim(struct pool *pool, uint64_t keep)
{
	struct pool_segment *next;

	for (struct pool_segment *s = pool->segments; s && pool->reserved > keep; s = next) {
		next = s->next;
		if (!s->used)
			segment_free(s);
	}
}

void pool_after_synchronise(int device)
{
	for (struct pool *pool = pools; pool; pool = pool->next)
		if (pool->head.device == device && pool->reserved > pool->threshold)
			pool_trim(pool, pool->threshold);
}

void pool_release_unused(int device)
{
	for (struct pool *pool = pools; pool; pool = pool->next)
		if (pool->head.device == device)
			pool_trim(pool, 0);
}

static int pool_grow(struct pool *pool, uint64_t bytes)
{
	struct pool_segment *segment = heap_new(sizeof(*segment));
	uint64_t size = bytes > POOL_SEGMENT_BYTES ? bytes : POOL_SEGMENT_BYTES;
	int rc = SIM_OUT_OF_MEMORY;

	if (!segment)
		return rc;
	/* prefer a whole segment, but the request itself is enough */
	for (int step = 0; rc && step < 3; step++) {
		if (step == 1)
			size = bytes;
		else if (step == 2)
			pool_release_unused(pool->head.device);
		if (pool->most && pool->reserved + size > pool->most)
			continue;
		rc = phys_new(pool->head.device, size, &segment->phys);
	}
	if (!rc) {
		segment->start = addresses_reserve(segment->phys->bytes, PAGE_BYTES, 0);
		if (!segment->start) {
			phys_free(segment->phys);
			rc = SIM_OUT_OF_MEMORY;
		}
	}
	if (rc) {
		heap_free(segment, sizeof(*segment));
		return rc;
	}
	segment->pool = pool;
	segment->next = pool->segments;
	pool->segments = segment;
	pool->reserved += segment->phys->bytes;
	if (pool->reserved > pool->reserved_high)
		pool->reserved_high = pool->reserved;
	gap_add(segment, segment->start, segment->phys->bytes);
	return SIM_OK;
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + SMALL_UNIT - 1) & ~(SMALL_UNIT - 1);
}

int pool_alloc(struct pool *pool, uint64_t bytes, struct block **out)
{
	uint64_t size = round_up(bytes);
	struct pool_gap *gap = (struct pool_gap *)spans_first_fit(&pool->unused, size);
	struct pool_segment *segment;
	uint64_t start, left;

	if (!bytes || bytes > 1ull << 46)
		return bytes ? SIM_OUT_OF_MEMORY : SIM_INVALID_VALUE;
	if (!gap) {
		int rc = pool_grow(pool, size);

		if (rc)
			return rc;
		gap = (struct pool_gap *)spans_first_fit(&pool->unused, size);
		if (!gap)
			return SIM_OUT_OF_MEMORY;
	}
	segment = gap->segment;
	start = gap->span.start;
	left = gap->span.size - size;
	*out = block_new(
	    BLOCK_POOL, pool->head.device, start, bytes, segment->phys, start - segment->start);
	if (!*out)
		return SIM_OUT_OF_MEMORY;
	(*out)->owner = segment;
	spans_remove(&pool->unused, &gap->span);
	heap_free(gap, sizeof(*gap));
	gap_add(segment, start + size, left);
	segment->used += size;
	pool->used += size;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
	return SIM_OK;
}

static void pool_unlink(struct pool *pool)
{
	for (struct pool **at = &pools; *at; at = &(*at)->next)
		if (*at == pool) {
			*at = pool->next;
			break;
		}
	heap_free(pool, sizeof(*pool));
}

void pool_free(struct block *block)
{
	struct pool_segment *segment = block->owner;
	struct pool *pool = segment->pool;
	uint64_t start = block->span.start, size = round_up(block->span.size);

	block_free(block);
	segment->used -= size;
	pool->used -= size;
	gap_add(segment, start, size);
	if (pool->head.kind)
		return;
	pool_trim(pool, 0);
	if (!pool->segments)
		pool_unlink(pool);
}

void pool_destroy(struct pool *pool)
{
	for (int i = 0; i < SIMGPU_DEVICES; i++)
		if (current[i] == pool)
			current[i] = NULL;
	pool->head.kind = 0;
	pool_trim(pool, 0);
	if (!pool->segments)
		pool_unlink(pool);
}
