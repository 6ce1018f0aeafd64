/*
 * caching_allocator.c - serves requests and releases: rounds up to segments, finds the best fit,
 * splits and joins blocks. See caching_allocator.h.
 */
#include "model/torch/caching_allocator.h"

#include <errno.h>
#include <stdlib.h>

#include "model/torch/caching_parts.h"
#include "util/map.h"

#define MIN_LARGE (10 * CACHING_MIB) /* larger requests get a segment of their own size */
#define ROUND_LARGE (2 * CACHING_MIB)

/* A request in progress. */
struct request {
	struct caching_pool *pool;
	uint64_t stream, size, segment;
	struct caching_block *block;
};

uint64_t caching_block_address(const struct caching_block *b)
{
	return b->address;
}

uint64_t caching_block_size(const struct caching_block *b)
{
	return b->size;
}

uint64_t *caching_block_tag(struct caching_block *b)
{
	return &b->tag;
}

/* --- blocks --- */

struct caching_block *caching_block_new(struct caching_allocator *a, struct caching_pool *pool,
    uint64_t stream, uint64_t address, uint64_t size)
{
	struct caching_block *b = a->spare;

	if (b)
		a->spare = b->next;
	else
		b = arena_alloc(&a->arena, sizeof(*b));
	if (b)
		*b = (struct caching_block){.address = address,
		    .size = size,
		    .stream = stream,
		    .pool = pool,
		    .mapped = true};
	return b;
}

void caching_block_drop(struct caching_allocator *a, struct caching_block *b)
{
	b->next = a->spare;
	a->spare = b;
}

static bool is_split(const struct caching_block *b)
{
	return b->prev || b->next;
}

/* Return the bytes of a free block that a flush would give back. */
static uint64_t idle_bytes(const struct caching_block *b)
{
	uint64_t start;

	if (b->pool->is_private && !b->pool->retired)
		return 0;
	if (b->range)
		return caching_range_pages(b, &start);
	return is_split(b) ? 0 : b->size;
}

void caching_free_insert(struct caching_allocator *a, struct caching_block *b)
{
	b->looked = b->pool->looked;
	a->stats.idle += idle_bytes(b);
	caching_set_insert(&b->pool->free, b);
}

void caching_free_remove(struct caching_allocator *a, struct caching_block *b)
{
	a->stats.idle -= idle_bytes(b);
	caching_set_remove(&b->pool->free, b);
}

void caching_reserved(struct caching_allocator *a, int64_t change)
{
	a->stats.reserved += (uint64_t)change;
	a->stats.segments += change > 0;
	if (a->stats.reserved > a->stats.peak_reserved)
		a->stats.peak_reserved = a->stats.reserved;
}

void caching_merge(struct caching_allocator *a, struct caching_block *b, struct caching_block *with)
{
	if (!with || with->allocated || with->mapped != b->mapped)
		return;
	if (with->mapped)
		caching_free_remove(a, with);
	else
		caching_set_remove(&with->pool->unmapped, with);
	if (b->prev == with) {
		b->address = with->address;
		b->prev = with->prev;
		if (b->prev)
			b->prev->next = b;
	} else {
		b->next = with->next;
		if (b->next)
			b->next->prev = b;
	}
	b->size += with->size;
	caching_block_drop(a, with);
}

/* --- pools --- */

static void pool_init(struct caching_pool *p, struct caching_pool like)
{
	*p = like;
	p->free.by_size = true;
}

static struct caching_private *find_private(const struct caching_allocator *a, uint64_t id)
{
	for (size_t i = 0; i < a->privates.count; i++)
		if (a->privates.items[i]->id == id)
			return a->privates.items[i];
	return NULL;
}

/* NULL: a private pool without a request so far. */
static const struct caching_pool *find_pool(
    const struct caching_allocator *a, uint64_t id, uint64_t size)
{
	const struct caching_private *p = id ? find_private(a, id) : NULL;

	if (id && !p)
		return NULL;
	if (size <= CACHING_SMALL)
		return p ? &p->small : &a->small;
	return p ? &p->large : &a->large;
}

static struct caching_pool *make_pool(struct caching_allocator *a, uint64_t id, uint64_t size)
{
	struct caching_private *p;

	if (id && !find_private(a, id)) {
		p = arena_alloc(&a->arena, sizeof(*p));
		if (!p || vec_push(&a->privates, p))
			return NULL;
		p->id = id;
		pool_init(&p->small, (struct caching_pool){.small = true, .is_private = true});
		pool_init(&p->large, (struct caching_pool){.is_private = true});
	}
	return (struct caching_pool *)find_pool(a, id, size);
}

int caching_allocator_new(const struct caching_config *config, struct caching_allocator **out)
{
	struct caching_allocator *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	map_seed();
	a->config = *config;
	pool_init(&a->small, (struct caching_pool){.small = true});
	pool_init(&a->large, (struct caching_pool){0});
	*out = a;
	return 0;
}

void caching_allocator_free(struct caching_allocator *a)
{
	if (!a)
		return;
	vec_free(&a->privates);
	vec_free(&a->to_unmap);
	arena_free(&a->arena);
	free(a);
}

/* --- requests --- */

uint64_t caching_segment_size(const struct caching_settings *s, uint64_t size)
{
	if (size <= CACHING_SMALL)
		return CACHING_SMALL_SEGMENT;
	if (size < MIN_LARGE)
		return s->large_segment;
	return (size + ROUND_LARGE - 1) / ROUND_LARGE * ROUND_LARGE;
}

/* Return the block's size, with the unmapped addresses that it can grow into. */
static uint64_t expandable_size(const struct caching_block *b)
{
	return b->size + (b->next && !b->next->mapped ? b->next->size : 0);
}

static struct caching_block *best_fit(const struct caching_allocator *a,
    const struct caching_pool *pool, uint64_t stream, uint64_t size)
{
	const struct caching_settings *s = &a->config.settings;
	struct caching_block *b = caching_set_at(&pool->free, stream, size, 0), *next;

	if (!b || b->stream != stream)
		return NULL;
	if (b->range && s->expandable) {
		while (b->range && (next = caching_set_next(&pool->free, b)) &&
		       next->stream == stream && expandable_size(next) < expandable_size(b))
			b = next;
	} else if (b->range) {
		/* Expandable segments were turned off: use segments of a fixed size only. */
		do
			b = caching_set_next(&pool->free, b);
		while (b && b->range && b->stream == stream);
		if (!b || b->stream != stream)
			return NULL;
	}
	if (size < s->max_split && b->size >= s->max_split)
		return NULL;
	if (size >= s->max_split && b->size - size >= s->max_rounding)
		return NULL;
	return b;
}

static bool find_free(struct caching_allocator *a, struct request *r)
{
	r->pool->looked += caching_collects(a);
	r->block = best_fit(a, r->pool, r->stream, r->size);
	if (r->block)
		caching_free_remove(a, r->block);
	return r->block;
}

/* Return 0, CACHING_REFUSED or -ENOMEM. */
static int take_segment(struct caching_allocator *a, struct request *r)
{
	uint64_t address;

	/* PyTorch checks a whole segment against the limit, even if it grows by less. */
	if (a->config.allowed != UINT64_MAX &&
	    (r->segment > a->config.allowed || a->stats.reserved > a->config.allowed - r->segment))
		return CACHING_REFUSED;
	if (a->config.settings.expandable)
		return caching_range_take(a, r->pool, r->stream, r->size, &r->block);
	if (!a->config.driver.take(a->config.driver.arg, r->segment, &address))
		return CACHING_REFUSED;
	caching_reserved(a, (int64_t)r->segment);
	r->block = caching_block_new(a, r->pool, r->stream, address, r->segment);
	return r->block ? 0 : -ENOMEM;
}

/* Take a new segment; if it is refused, give back more and more of the cache and try again. */
static int obtain(struct caching_allocator *a, struct request *r)
{
	int rc;

	if (caching_collects(a))
		caching_collect_garbage(a);
	rc = take_segment(a, r);
	if (rc == CACHING_REFUSED && a->config.settings.max_split != UINT64_MAX &&
	    caching_flush_oversize(a, r->pool, r->stream, r->size))
		rc = take_segment(a, r);
	if (rc != CACHING_REFUSED)
		return rc;
	rc = caching_flush_all(a);
	return rc ? rc : take_segment(a, r);
}

static bool should_split(const struct caching_allocator *a, const struct request *r)
{
	uint64_t rest = r->block->size - r->size;

	if (r->pool->small || a->config.settings.expandable)
		return rest >= CACHING_MIN_BLOCK;
	return r->size < a->config.settings.max_split && rest > CACHING_SMALL;
}

/* Split the block; the request gets the lower end. */
static int split(struct caching_allocator *a, struct request *r)
{
	struct caching_block *rest = r->block, *b;

	b = caching_block_new(a, r->pool, r->stream, rest->address, r->size);
	if (!b)
		return -ENOMEM;
	b->range = rest->range;
	b->prev = rest->prev;
	if (b->prev)
		b->prev->next = b;
	b->next = rest;
	rest->prev = b;
	rest->address += r->size;
	rest->size -= r->size;
	caching_free_insert(a, rest);
	r->block = b;
	return 0;
}

int caching_allocator_request(struct caching_allocator *a, struct caching_where where,
    uint64_t size, struct caching_block **out)
{
	struct request r = {.pool = make_pool(a, where.pool, size),
	    .stream = where.stream,
	    .size = size,
	    .segment = caching_segment_size(&a->config.settings, size)};
	int rc = 0;

	if (!r.pool)
		return -ENOMEM;
	if (!find_free(a, &r))
		rc = obtain(a, &r);
	if (!rc && should_split(a, &r))
		rc = split(a, &r);
	if (rc)
		return rc;
	r.block->allocated = true;
	r.block->tag = 0;
	a->stats.allocated += r.block->size;
	if (a->stats.allocated > a->stats.peak_allocated)
		a->stats.peak_allocated = a->stats.allocated;
	*out = r.block;
	return 0;
}

void caching_allocator_release(struct caching_allocator *a, struct caching_block *b)
{
	b->allocated = false;
	a->stats.allocated -= b->size;
	caching_merge(a, b, b->prev);
	caching_merge(a, b, b->next);
	caching_free_insert(a, b);
}

int caching_allocator_flush(struct caching_allocator *a)
{
	return caching_flush_all(a);
}

void caching_allocator_retire_pool(struct caching_allocator *a, uint64_t pool)
{
	struct caching_private *p = find_private(a, pool);
	struct caching_pool *both[] = {p ? &p->small : NULL, p ? &p->large : NULL};

	for (int i = 0; p && i < 2; i++) {
		if (both[i]->retired)
			continue;
		both[i]->retired = true;
		for (struct caching_block *b = caching_set_at(&both[i]->free, 0, 0, 0); b;
		     b = caching_set_next(&both[i]->free, b))
			a->stats.idle += idle_bytes(b);
	}
}

/* --- questions --- */

void caching_allocator_stats(const struct caching_allocator *a, struct caching_stats *out)
{
	*out = a->stats;
}

bool caching_allocator_would_hit(
    const struct caching_allocator *a, struct caching_where where, uint64_t size)
{
	const struct caching_pool *pool = find_pool(a, where.pool, size);

	return pool && best_fit(a, pool, where.stream, size);
}

uint64_t caching_largest_hole(
    const struct caching_allocator *a, struct caching_where where, uint64_t size)
{
	const struct caching_pool *pool = find_pool(a, where.pool, size);
	const struct caching_block *b =
	    pool ? caching_set_before(&pool->free, where.stream, UINT64_MAX, UINT64_MAX) : NULL;

	return b && b->stream == where.stream ? b->size : 0;
}

/* Check a pool; *idle grows by the bytes of its free blocks. */
static uint64_t check_pool(const struct caching_pool *p, uint64_t *idle)
{
	uint64_t sum = 0;

	for (const struct caching_block *b = caching_set_at(&p->free, 0, 0, 0); b;
	     b = caching_set_next(&p->free, b)) {
		if (b->allocated || !b->mapped || b->pool != p)
			abort();
		/* Free neighbours are always joined. */
		if (b->next && (b->next->prev != b || b->address + b->size != b->next->address ||
				   (!b->next->allocated && b->next->mapped)))
			abort();
		if (b->prev && (b->prev->next != b || (!b->prev->allocated && b->prev->mapped)))
			abort();
		sum += b->size;
		*idle += idle_bytes(b);
	}
	for (const struct caching_block *b = caching_set_at(&p->unmapped, 0, 0, 0); b;
	     b = caching_set_next(&p->unmapped, b))
		if (b->allocated || b->mapped || !b->range || (b->next && !b->next->mapped))
			abort();
	return sum;
}

void caching_allocator_check(const struct caching_allocator *a)
{
	uint64_t idle = 0, sum = check_pool(&a->small, &idle) + check_pool(&a->large, &idle);

	for (size_t i = 0; i < a->privates.count; i++)
		sum += check_pool(&a->privates.items[i]->small, &idle) +
		       check_pool(&a->privates.items[i]->large, &idle);
	if (sum + a->stats.allocated != a->stats.reserved || idle != a->stats.idle)
		abort();
}
