/*
 * caching_parts.h - what the files of struct caching_allocator share among themselves; nobody
 * else's.
 */
#ifndef ANALYZER_MODEL_CACHING_PARTS_H
#define ANALYZER_MODEL_CACHING_PARTS_H

#include "model/torch/caching_allocator.h"
#include "util/arena.h"
#include "util/vec.h"

#define CACHING_MIN_BLOCK 512u
#define CACHING_SMALL CACHING_MIB /* the largest request of the small pools */
#define CACHING_SMALL_SEGMENT (2 * CACHING_MIB)

struct caching_pool;

/* Addresses reserved for one stream of one pool, mapped page by page. */
struct caching_range {
	uint64_t start, size, page;
};

struct caching_block {
	uint64_t address, size, stream;
	struct caching_pool *pool;
	struct caching_block *prev, *next; /* its neighbours in the segment, by address */
	struct caching_range *range; /* NULL: a segment of a fixed size */
	bool allocated;
	bool mapped; /* false: addresses only, in a range */
	uint64_t looked; /* the pool's count when it became free */
	uint64_t tag; /* the caller's */
	struct caching_block *left, *right; /* in a set */
	uint32_t priority;
};

/* Blocks in order, a treap: by stream and then size and address, or address alone. */
struct caching_set {
	struct caching_block *root;
	bool by_size;
};

struct caching_pool {
	struct caching_set free, unmapped;
	bool small, is_private, retired;
	uint64_t looked; /* searches, while garbage is collected by age */
};

struct caching_private {
	uint64_t id;
	struct caching_pool small, large;
};

struct caching_allocator {
	struct caching_config config;
	struct caching_pool small, large;
	VEC(struct caching_private *) privates;
	struct caching_stats stats;
	struct arena arena;
	struct caching_block *spare; /* by .next */
	VEC(struct caching_block *) to_unmap; /* scratch of a flush */
};

/* caching_set.c */
void caching_set_insert(struct caching_set *s, struct caching_block *b);
void caching_set_remove(struct caching_set *s, struct caching_block *b);
/* The first at or after a place in the order, or NULL. */
struct caching_block *caching_set_at(
    const struct caching_set *s, uint64_t stream, uint64_t size, uint64_t address);
struct caching_block *caching_set_next(const struct caching_set *s, const struct caching_block *b);
struct caching_block *caching_set_prev(const struct caching_set *s, const struct caching_block *b);
/* The last before a place in the order, or NULL. */
struct caching_block *caching_set_before(
    const struct caching_set *s, uint64_t stream, uint64_t size, uint64_t address);

/* caching_allocator.c */
/* NULL: no memory. */
struct caching_block *caching_block_new(struct caching_allocator *a, struct caching_pool *pool,
    uint64_t stream, uint64_t address, uint64_t size);
void caching_block_drop(struct caching_allocator *a, struct caching_block *b);
void caching_free_insert(struct caching_allocator *a, struct caching_block *b);
void caching_free_remove(struct caching_allocator *a, struct caching_block *b);
/* Joins b with a neighbour that is free like it (or unmapped like it). */
void caching_merge(
    struct caching_allocator *a, struct caching_block *b, struct caching_block *with);
void caching_reserved(struct caching_allocator *a, int64_t change);

/* caching_range.c: expandable segments. */
/* A free block of at least that size, not in the free set. 0, CACHING_REFUSED, -ENOMEM. */
int caching_range_take(struct caching_allocator *a, struct caching_pool *pool, uint64_t stream,
    uint64_t size, struct caching_block **out);
/* Gives back the whole pages of a free block. 0 or -ENOMEM. */
int caching_range_unmap(struct caching_allocator *a, struct caching_block *b);
/* The pages that lie wholly in it. */
uint64_t caching_range_pages(const struct caching_block *b, uint64_t *start);

/* caching_flush.c: what is given back to the device. */
int caching_flush_all(struct caching_allocator *a);
/* Blocks that may not be split, until as much as wanted is free; false: that cannot be had. */
bool caching_flush_oversize(
    struct caching_allocator *a, struct caching_pool *pool, uint64_t stream, uint64_t size);
void caching_collect_garbage(struct caching_allocator *a);

static inline bool caching_collects(const struct caching_allocator *a)
{
	return a->config.allowed != UINT64_MAX && a->config.settings.gc_threshold > 0;
}

#endif
