/*
 * caching_flush.c - gives memory back to the device: the whole cache, blocks that may not be split,
 * or the oldest blocks.
 */
#include <errno.h>

#include "model/torch/caching_parts.h"

static bool is_whole(const struct caching_block *b)
{
	return !b->prev && !b->next && !b->range;
}

static void give_back(struct caching_allocator *a, struct caching_block *b)
{
	caching_free_remove(a, b);
	a->config.driver.give(a->config.driver.arg, b->address, b->size);
	caching_reserved(a, -(int64_t)b->size);
	caching_block_drop(a, b);
}

static int flush_pool(struct caching_allocator *a, struct caching_pool *p)
{
	struct caching_block *next;
	int rc = 0;

	/* Unmap afterwards: it changes the set that this loop walks. */
	a->to_unmap.count = 0;
	for (struct caching_block *b = caching_set_at(&p->free, 0, 0, 0); b && !rc; b = next) {
		next = caching_set_next(&p->free, b);
		if (b->range)
			rc = vec_push(&a->to_unmap, b);
		else if (is_whole(b))
			give_back(a, b);
	}
	for (size_t i = 0; i < a->to_unmap.count && !rc; i++)
		rc = caching_range_unmap(a, a->to_unmap.items[i]);
	return rc;
}

int caching_flush_all(struct caching_allocator *a)
{
	int rc = flush_pool(a, &a->large);

	if (!rc)
		rc = flush_pool(a, &a->small);
	for (size_t i = 0; i < a->privates.count && !rc; i++) {
		if (!a->privates.items[i]->small.retired)
			continue;
		rc = flush_pool(a, &a->privates.items[i]->small);
		if (!rc)
			rc = flush_pool(a, &a->privates.items[i]->large);
	}
	return rc;
}

bool caching_flush_oversize(
    struct caching_allocator *a, struct caching_pool *pool, uint64_t stream, uint64_t size)
{
	uint64_t least = a->config.settings.max_split, want = size < least ? least : size;
	struct caching_block *b = caching_set_at(&pool->free, stream, want, 0), *prev;
	uint64_t released = 0;

	if (b && b->stream == stream && !b->range) {
		give_back(a, b);
		return true;
	}
	/* None is large enough alone: flush several, from the largest down. */
	for (b = caching_set_before(&pool->free, stream, want, 0);
	     b && released < want && b->size >= least && b->stream == stream; b = prev) {
		prev = caching_set_prev(&pool->free, b);
		if (!b->range) {
			released += b->size;
			give_back(a, b);
		}
	}
	return released >= want;
}

static uint64_t age(const struct caching_block *b)
{
	return b->pool->looked - b->looked;
}

/* Give back whole segments that were idle for longer than average, again and again, until reserved
 * bytes are below the threshold. */
void caching_collect_garbage(struct caching_allocator *a)
{
	uint64_t threshold =
	    (uint64_t)(a->config.settings.gc_threshold * (double)a->config.allowed);
	struct caching_pool *p = &a->large;
	uint64_t target, reclaimed = 0, total_age = 0;
	int64_t count = 0;
	bool any = true;

	if (a->stats.reserved <= threshold)
		return;
	target = a->stats.reserved - threshold;
	for (struct caching_block *b = caching_set_at(&p->free, 0, 0, 0); b;
	     b = caching_set_next(&p->free, b)) {
		if (b->prev || b->next)
			continue;
		total_age += age(b);
		count++;
	}
	while (reclaimed < target && any && count > 0) {
		double limit = (double)total_age / (double)count;
		struct caching_block *next;

		any = false;
		for (struct caching_block *b = caching_set_at(&p->free, 0, 0, 0); b; b = next) {
			next = caching_set_next(&p->free, b);
			if (!is_whole(b) || (double)age(b) < limit)
				continue;
			any = true;
			reclaimed += b->size;
			total_age -= age(b);
			count--;
			give_back(a, b);
		}
	}
}
