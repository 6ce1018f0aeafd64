/*
 * caching_range.c - expandable segments. Each stream of a pool reserves addresses once, for more
 * than the whole device. A request maps memory there page by page, at the lowest address where it
 * fits.
 */
#include <errno.h>

#include "model/torch/caching_parts.h"

uint64_t caching_range_pages(const struct caching_block *b, uint64_t *start)
{
	const struct caching_range *r = b->range;
	uint64_t first = (b->address - r->start + r->page - 1) / r->page;
	uint64_t last = (b->address + b->size - r->start) / r->page;

	*start = r->start + first * r->page;
	return first < last ? (last - first) * r->page : 0;
}

/* True if free and unmapped blocks in a row, from b on, have room for `size` bytes. */
static bool has_room(const struct caching_block *b, uint64_t size)
{
	uint64_t sum = 0;

	for (; sum < size && b && !b->allocated; b = b->next)
		sum += b->size;
	return sum >= size;
}

static int new_range(struct caching_allocator *a, struct caching_pool *pool, uint64_t stream,
    struct caching_block **out)
{
	uint64_t page = pool->small ? CACHING_SMALL_SEGMENT : a->config.settings.large_segment;
	/* An eighth more than the device: pages may move from one end to the other. */
	uint64_t size = a->config.memory + a->config.memory / 8, address;
	struct caching_range *range = arena_alloc(&a->arena, sizeof(*range));

	if (!range)
		return -ENOMEM;
	size = (size + page - 1) / page * page;
	if (!a->config.driver.reserve(a->config.driver.arg, size, &address))
		return CACHING_REFUSED;
	*range = (struct caching_range){address, size, page};
	*out = caching_block_new(a, pool, stream, address, size);
	if (!*out)
		return -ENOMEM;
	(*out)->mapped = false;
	(*out)->range = range;
	caching_set_insert(&pool->unmapped, *out);
	return 0;
}

/* Find the first of a row of free and unmapped blocks with room for that size. */
static int find(struct caching_allocator *a, struct caching_pool *pool, uint64_t stream,
    uint64_t size, struct caching_block **out)
{
	struct caching_block *b = caching_set_at(&pool->unmapped, stream, 0, 0);

	for (; b && b->stream == stream; b = caching_set_next(&pool->unmapped, b)) {
		*out = b->prev && !b->prev->allocated ? b->prev : b;
		if (has_room(*out, size))
			return 0;
	}
	return new_range(a, pool, stream, out);
}

/* Map all pages or none. */
static bool map_pages(
    struct caching_allocator *a, const struct caching_range *r, uint64_t start, uint64_t size)
{
	const struct caching_driver *d = &a->config.driver;

	for (uint64_t done = 0; done < size; done += r->page) {
		if (d->map(d->arg, start + done, r->page))
			continue;
		for (; done > 0; done -= r->page)
			d->unmap(d->arg, start + done - r->page, r->page);
		return false;
	}
	return true;
}

/* Map memory for the first `size` bytes of an unmapped block, which becomes free. */
static int map_block(struct caching_allocator *a, struct caching_block *b, uint64_t size)
{
	uint64_t page = b->range->page, mapped = (size + page - 1) / page * page;
	struct caching_block *rest;

	if (!map_pages(a, b->range, b->address, mapped))
		return CACHING_REFUSED;
	caching_set_remove(&b->pool->unmapped, b);
	b->mapped = true;
	if (mapped < b->size) {
		rest =
		    caching_block_new(a, b->pool, b->stream, b->address + mapped, b->size - mapped);
		if (!rest)
			return -ENOMEM;
		rest->mapped = false;
		rest->range = b->range;
		rest->prev = b;
		rest->next = b->next;
		if (rest->next)
			rest->next->prev = rest;
		b->next = rest;
		b->size = mapped;
		caching_set_insert(&b->pool->unmapped, rest);
	}
	caching_merge(a, b, b->prev);
	caching_merge(a, b, b->next);
	caching_free_insert(a, b);
	caching_reserved(a, (int64_t)mapped);
	return 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int caching_range_take(struct caching_allocator *a, struct caching_pool *pool, uint64_t stream,
    uint64_t size, struct caching_block **out)
{
	struct caching_block *b, *next;
	int rc = find(a, pool, stream, size, &b);

	if (!rc && !b->mapped)
		rc = map_block(a, b, smaller(b->size, size));
	/* Mapped pages stay mapped when a later page is refused. */
	while (!rc && b->size < size) {
		next = b->next;
		rc = next ? map_block(a, next, smaller(size - b->size, next->size))
			  : CACHING_REFUSED; /* more than any range holds */
		b = next;
	}
	if (rc)
		return rc;
	caching_free_remove(a, b);
	*out = b;
	return 0;
}

/* Keep a free piece beside a block that is about to be unmapped. */
static int keep_piece(struct caching_allocator *a, struct caching_block *b, uint64_t address,
    uint64_t size, struct caching_block *prev, struct caching_block *next)
{
	struct caching_block *piece;

	if (!size)
		return 0;
	piece = caching_block_new(a, b->pool, b->stream, address, size);
	if (!piece)
		return -ENOMEM;
	piece->range = b->range;
	piece->prev = prev;
	piece->next = next;
	if (prev)
		prev->next = piece;
	if (next)
		next->prev = piece;
	caching_free_insert(a, piece);
	return 0;
}

int caching_range_unmap(struct caching_allocator *a, struct caching_block *b)
{
	const struct caching_driver *d = &a->config.driver;
	uint64_t start, size = caching_range_pages(b, &start), end = b->address + b->size;
	int rc;

	if (!size)
		return 0;
	caching_free_remove(a, b);
	rc = keep_piece(a, b, b->address, start - b->address, b->prev, b);
	if (!rc)
		rc = keep_piece(a, b, start + size, end - (start + size), b, b->next);
	if (rc)
		return rc;
	for (uint64_t done = 0; done < size; done += b->range->page)
		d->unmap(d->arg, start + done, b->range->page);
	b->address = start;
	b->size = size;
	b->mapped = false;
	caching_merge(a, b, b->prev);
	caching_merge(a, b, b->next);
	caching_set_insert(&b->pool->unmapped, b);
	caching_reserved(a, -(int64_t)size);
	if (!b->prev && !b->next) {
		caching_set_remove(&b->pool->unmapped, b);
		d->unreserve(d->arg, b->range->start, b->range->size);
		caching_block_drop(a, b);
	}
	return 0;
}
