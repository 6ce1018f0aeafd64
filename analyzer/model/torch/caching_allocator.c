/*
 * caching_allocator.c - serves requests and releases: rounds up to segments or maps pages of
 * expandable ones, finds the best fit, splits and joins blocks, and gives memory back to the
 * device. See caching_allocator.h.
 */
#include "model/torch/caching_allocator.h"

#include <errno.h>
#include <stdlib.h>

#include "util/arena.h"
#include "util/map.h"
#include "util/num.h"
#include "util/vec.h"

#define SMALL_SEGMENT (2 * CACHING_MIB)
#define MIN_LARGE (10 * CACHING_MIB) /* larger requests get a segment of their own size */
#define ROUND_LARGE (2 * CACHING_MIB)

/* Addresses reserved for one stream of one pool; memory is mapped there page by page. */
struct caching_range {
	uint64_t start, size, page;
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

/* A request in progress. */
struct request {
	struct caching_pool *pool;
	uint64_t stream, size, segment;
	struct caching_block *block;
};

/* --- blocks --- */

/* NULL: no memory. */
static struct caching_block *block_new(struct caching_allocator *a, struct caching_pool *pool,
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

static void block_drop(struct caching_allocator *a, struct caching_block *b)
{
	b->next = a->spare;
	a->spare = b;
}

static bool is_split(const struct caching_block *b)
{
	return b->prev || b->next;
}

/* Return the bytes of the pages that lie wholly in the block; *start: the first page. */
static uint64_t range_pages(const struct caching_block *b, uint64_t *start)
{
	const struct caching_range *r = b->range;
	uint64_t first = (b->address - r->start + r->page - 1) / r->page;
	uint64_t last = (b->address + b->size - r->start) / r->page;

	*start = r->start + first * r->page;
	return first < last ? (last - first) * r->page : 0;
}

/* Return the bytes of a free block that a flush would give back. */
static uint64_t idle_bytes(const struct caching_block *b)
{
	uint64_t start;

	if (b->pool->is_private && !b->pool->retired)
		return 0;
	if (b->range)
		return range_pages(b, &start);
	return is_split(b) ? 0 : b->size;
}

static void free_insert(struct caching_allocator *a, struct caching_block *b)
{
	b->looked = b->pool->looked;
	a->stats.idle += idle_bytes(b);
	caching_set_insert(&b->pool->free, b);
}

static void free_remove(struct caching_allocator *a, struct caching_block *b)
{
	a->stats.idle -= idle_bytes(b);
	caching_set_remove(&b->pool->free, b);
}

static void change_reserved(struct caching_allocator *a, int64_t change)
{
	a->stats.reserved += (uint64_t)change;
	a->stats.segments += change > 0;
	a->stats.peak_reserved = num_most(a->stats.peak_reserved, a->stats.reserved);
}

/* Join b with its neighbour, if both are free, or both unmapped. */
static void merge(struct caching_allocator *a, struct caching_block *b, struct caching_block *with)
{
	if (!with || with->allocated || with->mapped != b->mapped)
		return;
	if (with->mapped)
		free_remove(a, with);
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
	block_drop(a, with);
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

/* --- expandable segments --- */

/* Each stream of a pool reserves addresses once, for more than the whole device. A request maps
 * memory there page by page, at the lowest address where it fits. */

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
	uint64_t page = pool->small ? SMALL_SEGMENT : a->config.settings.large_segment;
	/* An eighth more than the device: pages may move from one end to the other. */
	uint64_t size = a->config.memory + a->config.memory / 8, address;
	struct caching_range *range = arena_alloc(&a->arena, sizeof(*range));

	if (!range)
		return -ENOMEM;
	size = (size + page - 1) / page * page;
	if (!a->config.driver.reserve(a->config.driver.arg, size, &address))
		return CACHING_REFUSED;
	*range = (struct caching_range){address, size, page};
	*out = block_new(a, pool, stream, address, size);
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
		rest = block_new(a, b->pool, b->stream, b->address + mapped, b->size - mapped);
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
	merge(a, b, b->prev);
	merge(a, b, b->next);
	free_insert(a, b);
	change_reserved(a, (int64_t)mapped);
	return 0;
}

/* Make a free block of at least that size, outside the free set. 0, CACHING_REFUSED, -ENOMEM. */
static int range_take(struct caching_allocator *a, struct caching_pool *pool, uint64_t stream,
    uint64_t size, struct caching_block **out)
{
	struct caching_block *b, *next;
	int rc = find(a, pool, stream, size, &b);

	if (!rc && !b->mapped)
		rc = map_block(a, b, num_least(b->size, size));
	/* Mapped pages stay mapped when a later page is refused. */
	while (!rc && b->size < size) {
		next = b->next;
		rc = next ? map_block(a, next, num_least(size - b->size, next->size))
			  : CACHING_REFUSED; /* more than any range holds */
		b = next;
	}
	if (rc)
		return rc;
	free_remove(a, b);
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
	piece = block_new(a, b->pool, b->stream, address, size);
	if (!piece)
		return -ENOMEM;
	piece->range = b->range;
	piece->prev = prev;
	piece->next = next;
	if (prev)
		prev->next = piece;
	if (next)
		next->prev = piece;
	free_insert(a, piece);
	return 0;
}

/* Give back the whole pages of a free block. 0 or -ENOMEM. */
static int range_unmap(struct caching_allocator *a, struct caching_block *b)
{
	const struct caching_driver *d = &a->config.driver;
	uint64_t start, size = range_pages(b, &start), end = b->address + b->size;
	int rc;

	if (!size)
		return 0;
	free_remove(a, b);
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
	merge(a, b, b->prev);
	merge(a, b, b->next);
	caching_set_insert(&b->pool->unmapped, b);
	change_reserved(a, -(int64_t)size);
	if (!b->prev && !b->next) {
		caching_set_remove(&b->pool->unmapped, b);
		d->unreserve(d->arg, b->range->start, b->range->size);
		block_drop(a, b);
	}
	return 0;
}

/* --- memory goes back to the device --- */

static bool is_whole(const struct caching_block *b)
{
	return !is_split(b) && !b->range;
}

static void give_back(struct caching_allocator *a, struct caching_block *b)
{
	free_remove(a, b);
	a->config.driver.give(a->config.driver.arg, b->address, b->size);
	change_reserved(a, -(int64_t)b->size);
	block_drop(a, b);
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
		rc = range_unmap(a, a->to_unmap.items[i]);
	return rc;
}

int caching_allocator_flush(struct caching_allocator *a)
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

/* Flush blocks that may not be split until enough is free; false: there are not enough. */
static bool flush_oversize(
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
static void collect_garbage(struct caching_allocator *a)
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
		if (is_split(b))
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

/* --- requests --- */

uint64_t caching_segment_size(const struct caching_settings *s, uint64_t size)
{
	if (size <= CACHING_SMALL)
		return SMALL_SEGMENT;
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

static bool collects(const struct caching_allocator *a)
{
	return a->config.allowed != UINT64_MAX && a->config.settings.gc_threshold > 0;
}

static bool find_free(struct caching_allocator *a, struct request *r)
{
	r->pool->looked += collects(a);
	r->block = best_fit(a, r->pool, r->stream, r->size);
	if (r->block)
		free_remove(a, r->block);
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
		return range_take(a, r->pool, r->stream, r->size, &r->block);
	if (!a->config.driver.take(a->config.driver.arg, r->segment, &address))
		return CACHING_REFUSED;
	change_reserved(a, (int64_t)r->segment);
	r->block = block_new(a, r->pool, r->stream, address, r->segment);
	return r->block ? 0 : -ENOMEM;
}

/* Take a new segment; if it is refused, give back more and more of the cache and try again. */
static int obtain(struct caching_allocator *a, struct request *r)
{
	int rc;

	if (collects(a))
		collect_garbage(a);
	rc = take_segment(a, r);
	if (rc == CACHING_REFUSED && a->config.settings.max_split != UINT64_MAX &&
	    flush_oversize(a, r->pool, r->stream, r->size))
		rc = take_segment(a, r);
	if (rc != CACHING_REFUSED)
		return rc;
	rc = caching_allocator_flush(a);
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

	b = block_new(a, r->pool, r->stream, rest->address, r->size);
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
	free_insert(a, rest);
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
	a->stats.peak_allocated = num_most(a->stats.peak_allocated, a->stats.allocated);
	*out = r.block;
	return 0;
}

void caching_allocator_release(struct caching_allocator *a, struct caching_block *b)
{
	b->allocated = false;
	a->stats.allocated -= b->size;
	merge(a, b, b->prev);
	merge(a, b, b->next);
	free_insert(a, b);
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
