/*
 * caching_set.h - the blocks of PyTorch's caching allocator, in order: in a treap, by stream, size
 * and address, or by stream and address alone.
 */
#ifndef ANALYZER_MODEL_CACHING_SET_H
#define ANALYZER_MODEL_CACHING_SET_H

#include <stdbool.h>
#include <stdint.h>

struct caching_pool;
struct caching_range;

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

struct caching_set {
	struct caching_block *root;
	bool by_size;
};

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

#endif
