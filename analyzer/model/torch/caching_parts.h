/* caching_parts.h - what the files of struct caching_allocator share among themselves. */
#ifndef ANALYZER_MODEL_CACHING_PARTS_H
#define ANALYZER_MODEL_CACHING_PARTS_H

#include "model/torch/caching_allocator.h"
#include "util/arena.h"
#include "util/vec.h"

#define CACHING_MIN_BLOCK 512u
#define CACHING_SMALL CACHING_MIB /* the largest request of the small pools */
#define CACHING_SMALL_SEGMENT (2 * CACHING_MIB)

struct caching_pool;

/* Addresses reserved for one stream of one pool; memory is mapped there page by page. */
struct caching_range {
	uint64_t start, size, page;
};

struct caching_block {
	uint64_t address, size, stream;
	struct caching_pool *pool;
	struct caching_block *prev, *next; /* neighbours in the segment, by address */
	struct caching_range *range; /* NULL: a segment of a fixed size */
	bool allocated;
	bool mapped; /* false: addresses only, in a range */
	uint64_t looked; /* value of the pool's `looked` when the block became free */
	uint64_t tag; /* the caller's number */
	struct caching_block *left, *right; /* children in the set */
	uint32_t priority;
};

/* Blocks in order, in a treap: by stream, size and address, or by address alone. */
struct caching_set {
	struct caching_block *root;
	bool by_size;
};

struct caching_pool {
	struct caching_set free, unmapped;
	bool small, is_private, retired;
	uint64_t looked; /* searches so far, if garbage is collected by age */
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
	VEC(struct caching_block *) to_unmap; /* used within a flush */
};

/* caching_set.c */
void caching_set_insert(struct caching_set *s, struct caching_block *b);
void caching_set_remove(struct caching_set *s, struct caching_block *b);
/* Find the first block at or after that key, or NULL. */
struct caching_block *caching_set_at(
    const struct caching_set *s, uint64_t stream, uint64_t size, uint64_t address);
struct caching_block *caching_set_next(const struct caching_set *s, const struct caching_block *b);
struct caching_block *caching_set_prev(const struct caching_set *s, const struct caching_block *b);
/* Find the last block before that key, or NULL. */
struct caching_block *caching_set_before(
    const struct caching_set *s, uint64_t stream, uint64_t size, uint64_t address);

/* caching_allocator.c */
/* NULL: no memory. */
struct caching_block *caching_block_new(struct caching_allocator *a, struct caching_pool *pool,
    uint64_t stream, uint64_t address, uint64_t size);
void caching_block_drop(struct caching_allocator *a, struct caching_block *b);
void caching_free_insert(struct caching_allocator *a, struct caching_block *b);
void caching_free_remove(struct caching_allocator *a, struct caching_block *b);
/* Join b with its neighbour, if both are free, or both unmapped. */
void caching_merge(
    struct caching_allocator *a, struct caching_block *b, struct caching_block *with);
void caching_reserved(struct caching_allocator *a, int64_t change);

/* caching_range.c: expandable segments. */
/* Make a free block of at least that size, outside the free set. 0, CACHING_REFUSED, -ENOMEM. */
int caching_range_take(struct caching_allocator *a, struct caching_pool *pool, uint64_t stream,
    uint64_t size, struct caching_block **out);
/* Give back the whole pages of a free block. 0 or -ENOMEM. */
int caching_range_unmap(struct caching_allocator *a, struct caching_block *b);
/* Return the bytes of the pages that lie wholly in the block; *start: the first page. */
uint64_t caching_range_pages(const struct caching_block *b, uint64_t *start);

/* caching_flush.c: gives memory back to the device. */
int caching_flush_all(struct caching_allocator *a);
/* Flush blocks that may not be split until enough is free; false: there are not enough. */
bool caching_flush_oversize(
    struct caching_allocator *a, struct caching_pool *pool, uint64_t stream, uint64_t size);
void caching_collect_garbage(struct caching_allocator *a);

static inline bool caching_collects(const struct caching_allocator *a)
{
	return a->config.allowed != UINT64_MAX && a->config.settings.gc_threshold > 0;
}

#endif
