/*
 * torch_streams.c - tells streams apart. Blocks show the holes of each segment. Two segments belong
 * to different streams when a request was served from one while best fit would have taken a hole of
 * the other. The fewest streams that allow this are assumed. See torch_parts.h.
 */
#include "model/torch/torch_parts.h"

#include <errno.h>
#include <string.h>

#include "util/arena.h"
#include "util/num.h"

#define HOLES_LOOKED_AT 256u /* for one request; a missed hole shows at another request */
#define PAIRS_MAX (1u << 20)
#define UNLABELLED UINT32_MAX

/* The addresses of an expandable segment. */
struct live_range {
	uint32_t segment;
	bool small;
};

struct gap {
	uint64_t end, widest;
};

struct finder {
	const struct caching_settings *settings;
	struct torch_record record;
	struct torch_streams *out;
	struct arena arena;
	struct caching_block *spare;
	struct caching_set holes; /* .stream: 1 for small pools; .tag: segment */
	struct map hole_at, block_at; /* address to piece */
	struct map pairs; /* segments of different streams: the later << 32 | the earlier */
	VEC(struct caching_block *) first; /* by segment: its first piece; NULL: not tracked */
	struct ranges range_blocks,
	    range_pages; /* live blocks, and mapped memory, of expandable segments */
	VEC(struct live_range) live_ranges;
	uint64_t peak;
};

/* --- pieces --- */

static struct caching_block *new_piece(
    struct finder *f, uint64_t address, uint64_t size, bool small, uint32_t segment)
{
	struct caching_block *b = f->spare;

	if (b)
		f->spare = b->next;
	else
		b = arena_alloc(&f->arena, sizeof(*b));
	if (b)
		*b = (struct caching_block){
		    .address = address, .size = size, .stream = small, .tag = segment};
	return b;
}

static void drop_piece(struct finder *f, struct caching_block *b)
{
	b->next = f->spare;
	f->spare = b;
}

static int add_hole(struct finder *f, struct caching_block *b)
{
	uint64_t *slot = map_put(&f->hole_at, b->address);

	if (!slot)
		return -ENOMEM;
	*slot = (uint64_t)(uintptr_t)b;
	caching_set_insert(&f->holes, b);
	return 0;
}

static void remove_hole(struct finder *f, struct caching_block *b)
{
	map_remove(&f->hole_at, b->address);
	caching_set_remove(&f->holes, b);
}

static struct caching_block *piece_at(const struct map *map, uint64_t address)
{
	const uint64_t *slot = map_find(map, address);

	return slot ? (struct caching_block *)(uintptr_t)*slot : NULL;
}

/* Join b with a neighbour that is a hole, too. */
static void join(struct finder *f, struct caching_block *b, struct caching_block *with)
{
	if (!with || with->allocated)
		return;
	remove_hole(f, with);
	if (b->prev == with) {
		b->address = with->address;
		b->prev = with->prev;
		if (b->prev)
			b->prev->next = b;
		else
			f->first.items[b->tag] = b;
	} else {
		b->next = with->next;
		if (b->next)
			b->next->prev = b;
	}
	b->size += with->size;
	drop_piece(f, with);
}

static void drop_segment(struct finder *f, uint32_t segment)
{
	struct caching_block *b = segment < f->first.count ? f->first.items[segment] : NULL, *next;

	if (!b)
		return;
	f->first.items[segment] = NULL;
	for (; b; b = next) {
		next = b->next;
		if (b->allocated)
			map_remove(&f->block_at, b->address);
		else
			remove_hole(f, b);
		drop_piece(f, b);
	}
}

/* --- evidence --- */

static int tell_apart(struct finder *f, uint32_t a, uint32_t b)
{
	uint64_t key = a > b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;

	if (a == b || f->pairs.count >= PAIRS_MAX)
		return 0;
	return map_put(&f->pairs, key) ? 0 : -ENOMEM;
}

/* True if the hole could have served a request for a block of that size. */
static bool would_do(
    const struct caching_settings *s, const struct caching_block *hole, uint64_t size)
{
	if (torch_record_least(s, size) < s->max_split)
		return hole->size < s->max_split;
	return hole->size - size < s->max_rounding;
}

/* The request was served from `chosen`, or from a new segment (NULL). */
static int note_passed_over(
    struct finder *f, const struct caching_block *chosen, uint32_t segment, uint64_t size)
{
	bool small = f->record.segments.items[segment].small;
	struct caching_block *hole = caching_set_at(&f->holes, small, size, 0);
	int rc = 0;

	for (unsigned n = 0;
	     hole && hole != chosen && hole->stream == small && !rc && n < HOLES_LOOKED_AT;
	     n++, hole = caching_set_next(&f->holes, hole))
		if (would_do(f->settings, hole, size))
			rc = tell_apart(f, segment, (uint32_t)hole->tag);
	return rc;
}

/* A flush gave back the whole cache except this segment: flushes do not reach it. */
static void note_kept(struct finder *f)
{
	const struct caching_block *b;

	for (b = caching_set_at(&f->holes, 0, 0, 0); b; b = caching_set_next(&f->holes, b))
		if (!b->prev && !b->next)
			f->out->labels.items[b->tag].is_private = true;
}

/* --- the record --- */

static int grow(struct finder *f)
{
	int rc = 0;

	while (!rc && f->first.count < f->record.segments.count) {
		rc = vec_push(&f->first, NULL);
		if (!rc)
			rc = vec_push(&f->out->labels, (struct torch_label){.stream = UNLABELLED});
	}
	return rc;
}

static int settle_block(struct finder *f, struct caching_block *hole, uint64_t size)
{
	struct caching_block *rest;
	uint64_t *slot;
	int rc = 0;

	if (hole->size > size) {
		rest = new_piece(
		    f, hole->address + size, hole->size - size, hole->stream, (uint32_t)hole->tag);
		if (!rest)
			return -ENOMEM;
		rest->prev = hole;
		rest->next = hole->next;
		if (rest->next)
			rest->next->prev = rest;
		hole->next = rest;
		hole->size = size;
		rc = add_hole(f, rest);
	}
	hole->allocated = true;
	slot = map_put(&f->block_at, hole->address);
	if (!slot)
		return -ENOMEM;
	*slot = (uint64_t)(uintptr_t)hole;
	return rc;
}

/* Find the widest stretch without a live block, mapped or not. */
static void widen(void *arg, const struct range *block)
{
	struct gap *g = arg;

	if (block->start > g->end && block->start - g->end > g->widest)
		g->widest = block->start - g->end;
	g->end = block->end;
}

static bool has_gap(const struct finder *f, uint32_t segment, uint64_t size)
{
	const struct torch_segment *s = &f->record.segments.items[segment];
	struct gap g = {.end = s->address};

	ranges_within(&f->range_blocks, s->address, s->address + s->size, widen, &g);
	return g.widest >= size || s->address + s->size - g.end >= size;
}

struct hole_search {
	const struct finder *f;
	uint64_t size, start, end; /* the wanted size; the gap under examination */
	uint64_t run, run_end; /* contiguous memory in the gap, up to run_end */
	bool found;
};

static void add_page(void *arg, const struct range *page)
{
	struct hole_search *h = arg;
	uint64_t start = page->start > h->start ? page->start : h->start;
	uint64_t end = page->end < h->end ? page->end : h->end;

	h->run = (start == h->run_end ? h->run : 0) + (end - start);
	h->run_end = end;
	h->found |= h->run >= h->size;
}

static void look_until(struct hole_search *h, uint64_t end)
{
	h->end = end;
	h->run = h->run_end = 0;
	if (!h->found && h->start < end && end - h->start >= h->size)
		ranges_within(&h->f->range_pages, h->start, end, add_page, h);
}

static void look_before(void *arg, const struct range *block)
{
	struct hole_search *h = arg;

	look_until(h, block->start);
	h->start = block->end;
}

/* True if that many bytes of contiguous memory are free there. */
static bool has_hole(const struct finder *f, uint32_t segment, uint64_t size)
{
	const struct torch_segment *s = &f->record.segments.items[segment];
	struct hole_search h = {.f = f, .size = size, .start = s->address};

	ranges_within(&f->range_blocks, s->address, s->address + s->size, look_before, &h);
	look_until(&h, s->address + s->size);
	return h.found;
}

/* Return the streams, as bits, that could have served the request from their own memory. */
static uint64_t able_streams(const struct finder *f, uint64_t size)
{
	uint64_t able = 0;

	for (size_t i = 0; i < f->live_ranges.count; i++) {
		const struct live_range *l = &f->live_ranges.items[i];
		uint32_t stream = f->out->labels.items[l->segment].stream;

		if (l->small == (size <= CACHING_SMALL) && stream < 64 &&
		    has_hole(f, l->segment, size))
			able |= 1ull << stream;
	}
	return able;
}

/* Label a new range. A stream makes one only when its ranges have no room for the request: neither
 * now, nor (`able`) before the cache was given back for it. */
static int label_range(struct finder *f, uint32_t segment, uint64_t size, uint64_t able)
{
	struct torch_label *labels = f->out->labels.items;
	bool small = size <= CACHING_SMALL;
	uint32_t label = 0;

	while (label < 64 && able >> label & 1)
		label++;
	for (size_t i = 0; i < f->live_ranges.count; i++) {
		struct live_range *l = &f->live_ranges.items[i];

		if (!f->record.segments.items[l->segment].live) {
			*l = f->live_ranges.items[--f->live_ranges.count];
			i--;
		} else if (l->small == small && labels[l->segment].stream == label &&
			   has_gap(f, l->segment, size)) {
			do
				label++;
			while (label < 64 && able >> label & 1);
			i = SIZE_MAX; /* from the start */
		}
	}
	labels[segment].stream = label;
	return vec_push(&f->live_ranges, (struct live_range){segment, small});
}

static int label_ranges(struct finder *f, const struct torch_step *step, uint64_t able)
{
	const struct torch_record *r = &f->record;
	int rc = 0;

	for (size_t i = 0; i < r->calls.count && !rc; i++)
		if (r->calls.items[i].kind == TORCH_RESERVE &&
		    r->calls.items[i].thread == step->block.thread &&
		    r->segments.items[r->calls.items[i].segment].live)
			rc = label_range(f, r->calls.items[i].segment, step->block.size, able);
	return rc;
}

static int settle_in_range(struct finder *f, const struct torch_block *b)
{
	struct range at = {.start = b->address, .end = b->address + b->size};
	int rc = ranges_cut(&f->range_blocks, at.start, at.end, NULL, NULL);

	return rc ? rc : ranges_add(&f->range_blocks, &at);
}

static int on_request(struct finder *f, const struct torch_step *step)
{
	const struct torch_segment *s;
	struct caching_block *hole;
	int rc;

	if (step->segment == TORCH_NO_SEGMENT)
		return 0;
	s = &f->record.segments.items[step->segment];
	if (s->range)
		return settle_in_range(f, &step->block);
	hole = piece_at(&f->hole_at, step->block.address);
	if (hole) {
		rc = note_passed_over(f, hole, step->segment, step->block.size);
		if (rc)
			return rc;
		remove_hole(f, hole);
	} else {
		if (f->first.items[step->segment] || step->block.address != s->address)
			return 0; /* contradicts earlier evidence */
		hole = new_piece(f, s->address, s->size, s->small, step->segment);
		if (!hole)
			return -ENOMEM;
		f->first.items[step->segment] = hole;
	}
	return hole->size < step->block.size ? add_hole(f, hole)
					     : settle_block(f, hole, step->block.size);
}

static int on_release(struct finder *f, uint64_t address)
{
	struct caching_block *b = piece_at(&f->block_at, address);
	const struct range *of_range = b ? NULL : ranges_find(&f->range_blocks, address);

	if (of_range && of_range->start == address)
		return ranges_cut(&f->range_blocks, of_range->start, of_range->end, NULL, NULL);
	if (!b)
		return 0;
	map_remove(&f->block_at, address);
	b->allocated = false;
	join(f, b, b->prev);
	join(f, b, b->next);
	return add_hole(f, b);
}

/* PyTorch refused without asking the device: reserved bytes were at their limit. */
static void note_limit(struct finder *f, const struct torch_step *step)
{
	const struct torch_record *r = &f->record;
	uint64_t limit = r->torch_bytes + caching_segment_size(f->settings, step->block.size) - 1;

	for (size_t i = 0; i < r->calls.count; i++)
		if (r->calls.items[i].kind == TORCH_REFUSE &&
		    r->calls.items[i].thread == step->block.thread)
			return;
	f->out->allowed = num_least(f->out->allowed, limit);
}

static int apply_call(struct finder *f, const struct torch_call *c)
{
	struct range at = {.start = c->address, .end = c->address + c->size};
	int rc = 0;

	if (c->kind == TORCH_GIVE)
		drop_segment(f, c->segment);
	if (c->kind == TORCH_MAP || c->kind == TORCH_UNMAP || c->kind == TORCH_RESERVE)
		rc = ranges_cut(&f->range_pages, at.start, at.end, NULL, NULL);
	if (!rc && c->kind == TORCH_MAP)
		rc = ranges_add(&f->range_pages, &at);
	return rc;
}

/* What a step's calls show. */
struct told {
	bool given; /* segments were given back */
	uint64_t able; /* streams that cannot have made a range */
};

/* Apply the calls. The program released memory before the first request to the device; later
 * releases made room for the request, which had passed over that memory. */
static int apply_calls(struct finder *f, const struct torch_step *step, struct told *told)
{
	const struct torch_record *r = &f->record;
	bool asked = false, fresh = false, ranged = false;
	int rc = 0;

	for (size_t i = 0; i < r->calls.count; i++) {
		fresh |= r->calls.items[i].kind == TORCH_TAKE &&
			 r->calls.items[i].segment == step->segment;
		ranged |= r->calls.items[i].kind == TORCH_RESERVE;
	}
	for (size_t i = 0; i < r->calls.count && !rc; i++) {
		const struct torch_call *c = &r->calls.items[i];
		bool release = c->kind == TORCH_GIVE || c->kind == TORCH_UNMAP;

		told->given |= c->kind == TORCH_GIVE;
		if (!release && !asked && c->thread == step->block.thread) {
			asked = true;
			if (fresh)
				rc = note_passed_over(f, NULL, step->segment, step->block.size);
			if (ranged)
				told->able = able_streams(f, step->block.size);
		}
		if (!rc)
			rc = apply_call(f, c);
	}
	/* Other segments took the place of one whose release was not recorded. */
	for (size_t i = 0; i < r->died.count; i++)
		drop_segment(f, r->died.items[i]);
	return rc;
}

static int on_step(struct finder *f, const struct torch_step *step)
{
	const struct torch_record *r = &f->record;
	bool some = f->settings->gc_threshold > 0 || f->settings->max_split != UINT64_MAX;
	struct told told = {0};
	int rc = grow(f);

	if (!rc)
		rc = apply_calls(f, step, &told);
	if (rc)
		return rc;
	/* With these settings a flush may be partial; before a refusal it is complete. */
	if (step->block.refused || (told.given && !some))
		note_kept(f);
	f->peak = num_most(f->peak, r->torch_bytes);
	if (step->kind == TORCH_RELEASE)
		return on_release(f, step->block.address);
	rc = label_ranges(f, step, told.able);
	if (rc)
		return rc;
	if (!step->block.refused)
		return on_request(f, step);
	note_limit(f, step);
	return 0;
}

/* --- the fewest streams --- */

static int by_later(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Choose the smallest label that none of `apart` has. */
static uint32_t choose(const struct torch_label *labels, uint32_t segment, const uint64_t *apart,
    size_t count, uint64_t *seen)
{
	uint32_t label = 0;

	for (size_t i = 0; i < count; i++) {
		const struct torch_label *other = &labels[(uint32_t)apart[i]];

		if (other->is_private == labels[segment].is_private && other->stream != UNLABELLED)
			seen[other->stream] = segment + 1u;
	}
	while (seen[label] == segment + 1u)
		label++;
	return label;
}

static int label_segments(struct finder *f)
{
	struct torch_label *labels = f->out->labels.items;
	size_t pairs = 0, at = 0, n = f->out->labels.count;
	uint64_t *sorted = malloc((f->pairs.count + 1) * sizeof(*sorted));
	/* by label: 1 + a segment of another stream */
	uint64_t *seen = calloc(n + 1, sizeof(*seen));

	if (!sorted || !seen) {
		free(sorted);
		free(seen);
		return -ENOMEM;
	}
	for (size_t i = 0; i < f->pairs.capacity; i++)
		if (f->pairs.used[i])
			sorted[pairs++] = f->pairs.slots[i].key;
	qsort(sorted, pairs, sizeof(*sorted), by_later);
	for (uint32_t segment = 0; segment < n; segment++) {
		size_t from = at;

		while (at < pairs && sorted[at] >> 32 == segment)
			at++;
		if (labels[segment].stream == UNLABELLED)
			labels[segment].stream =
			    choose(labels, segment, sorted + from, at - from, seen);
	}
	free(sorted);
	free(seen);
	return 0;
}

static void count_streams(struct finder *f)
{
	uint32_t most[2] = {0, 0};

	for (size_t i = 0; i < f->out->labels.count; i++) {
		const struct torch_label *l = &f->out->labels.items[i];

		if (f->record.segments.items[i].torch && l->stream + 1 > most[l->is_private])
			most[l->is_private] = l->stream + 1;
	}
	f->out->count = most[0] + most[1];
}

static int walk(struct finder *f, struct err *err)
{
	struct feed *feed = &f->record.feed;
	struct torch_step step;
	struct event e;
	int rc = feed_rewind_spaces(feed, err), more = 0;

	while (!rc && (more = feed->next(feed->self, &e, err)) == 1) {
		rc = torch_record_event(&f->record, &e, &step);
		if (!rc && step.kind != TORCH_NOTHING)
			rc = on_step(f, &step);
		if (rc)
			return err_set(err, rc, "no memory for PyTorch's blocks");
	}
	if (rc || more < 0)
		return rc ? rc : more;
	rc = grow(f);
	if (!rc)
		rc = label_segments(f);
	return rc ? err_set(err, rc, "no memory for PyTorch's segments") : 0;
}

int torch_streams_find(struct feed feed, uint32_t device, const struct caching_settings *settings,
    struct torch_streams *out, struct err *err)
{
	struct finder f = {.settings = settings, .out = out, .holes = {.by_size = true}};
	int rc;

	memset(out, 0, sizeof(*out));
	out->allowed = UINT64_MAX;
	map_seed();
	ranges_init(&f.range_blocks);
	ranges_init(&f.range_pages);
	torch_record_init(&f.record, feed, device);
	rc = walk(&f, err);
	if (!rc) {
		count_streams(&f);
		out->memory = f.record.memory;
		if (f.peak > out->allowed)
			out->allowed = UINT64_MAX; /* the limit did not hold for the whole run */
	} else {
		torch_streams_fini(out);
	}
	torch_record_fini(&f.record);
	map_free(&f.hole_at);
	map_free(&f.block_at);
	map_free(&f.pairs);
	vec_free(&f.first);
	vec_free(&f.live_ranges);
	ranges_fini(&f.range_blocks);
	ranges_fini(&f.range_pages);
	arena_free(&f.arena);
	return rc;
}

void torch_streams_fini(struct torch_streams *s)
{
	vec_free(&s->labels);
}

struct caching_where torch_streams_where(const struct torch_streams *s, uint32_t segment)
{
	struct torch_label label = {0};

	if (segment < s->labels.count)
		label = s->labels.items[segment];
	return (struct caching_where){.pool = label.is_private ? label.stream + 1u : 0,
	    .stream = label.is_private ? 0 : label.stream};
}
