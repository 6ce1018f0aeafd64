/* layout.c - a space's segments, blocks and holes at a moment, merged to what can be seen. */
#include <stdlib.h>

#include "report/html/page_parts.h"
#include "util/num.h"

#define SITES_MAX 500u /* told apart; the rest is one */
/* A piece thinner than this part of the widest segment is not seen before one zooms in. */
#define THIN_PART 4000u

/* Kinds of a piece; a block's is KIND_SITE + the number of its call site. */
enum { KIND_HOLE, KIND_MIXED, KIND_OTHER, KIND_SITE };

struct merged {
	uint64_t bytes, live, birth_ns; /* birth: of the eldest block */
	uint64_t blocks, holes;
	uint32_t kind;
};

struct writer {
	const struct space_map *map;
	uint64_t thin;
	VEC(struct merged) pieces; /* of all segments */
	VEC(uint32_t) counts; /* pieces by segment */
	bool failed;
};

static uint32_t kind_of(const struct map_piece *p)
{
	return p->callsite == MAP_HOLE	 ? KIND_HOLE
	       : p->callsite < SITES_MAX ? KIND_SITE + p->callsite
					 : KIND_OTHER;
}

/* Neighbours of one kind are one; so are thin ones beside each other. */
static bool joins(const struct writer *w, const struct merged *a, const struct merged *b)
{
	if (a->kind == b->kind && a->kind != KIND_HOLE)
		return true;
	return a->bytes < w->thin && b->bytes < w->thin;
}

static void join(struct merged *a, const struct merged *b)
{
	if (a->kind != b->kind)
		a->kind = KIND_MIXED;
	if (!a->blocks || (b->blocks && b->birth_ns < a->birth_ns))
		a->birth_ns = b->birth_ns;
	a->bytes += b->bytes;
	a->live += b->live;
	a->blocks += b->blocks;
	a->holes += b->holes;
}

static void merge_segment(struct writer *w, const struct map_segment *s)
{
	size_t first = w->pieces.count;

	for (size_t i = 0; i < s->count; i++) {
		const struct map_piece *p = &w->map->pieces.items[s->first + i];
		bool hole = p->callsite == MAP_HOLE;
		struct merged one = {p->end - p->start, hole ? 0 : p->end - p->start, p->birth_ns,
		    !hole, hole, kind_of(p)};

		if (w->pieces.count > first &&
		    joins(w, &w->pieces.items[w->pieces.count - 1], &one))
			join(&w->pieces.items[w->pieces.count - 1], &one);
		else if (vec_push(&w->pieces, one))
			w->failed = true;
	}
	if (vec_push(&w->counts, (uint32_t)(w->pieces.count - first)))
		w->failed = true;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? 1 : *x > *y ? -1 : 0;
}

/* The size from which on segments are shown. */
static uint64_t smallest_shown(const struct space_map *map, uint64_t segments)
{
	uint64_t *sizes, least = 0;

	if (map->segments.count <= segments)
		return 0;
	sizes = malloc(map->segments.count * sizeof(*sizes));
	if (!sizes)
		return UINT64_MAX;
	for (size_t i = 0; i < map->segments.count; i++)
		sizes[i] = map->segments.items[i].end - map->segments.items[i].start;
	qsort(sizes, map->segments.count, sizeof(*sizes), by_size);
	least = sizes[segments - 1] + 1;
	free(sizes);
	return least;
}

static void write_segments(const struct writer *w, uint64_t least, struct str *to)
{
	const struct space_map *map = w->map;
	struct block_column starts = {to, 0}, sizes = {to, 0};
	uint64_t count = 0, hidden = 0, hidden_bytes = 0;

	for (size_t i = 0; i < map->segments.count; i++) {
		uint64_t size = map->segments.items[i].end - map->segments.items[i].start;

		count += size >= least;
		hidden += size < least;
		hidden_bytes += size < least ? size : 0;
	}
	block_number(to, count);
	block_number(to, hidden);
	block_number(to, hidden_bytes);
	for (size_t i = 0, shown = 0; i < map->segments.count; i++) {
		const struct map_segment *s = &map->segments.items[i];

		if (s->end - s->start < least)
			continue;
		block_next(&starts, s->start);
		block_next(&sizes, s->end - s->start);
		block_number(to, s->birth_ns);
		block_number(to,
		    (unsigned)s->acquired | (unsigned)s->captured << 1 | (unsigned)s->mapped << 2);
		block_number(to, w->counts.items[shown++]);
	}
}

static void write_pieces(const struct writer *w, struct str *to)
{
	struct block_column births = {to, 0};

	block_number(to, w->pieces.count);
	for (size_t i = 0; i < w->pieces.count; i++)
		block_number(to, w->pieces.items[i].kind);
	for (size_t i = 0; i < w->pieces.count; i++)
		block_number(to, w->pieces.items[i].bytes);
	for (size_t i = 0; i < w->pieces.count; i++)
		block_number(to, w->pieces.items[i].bytes - w->pieces.items[i].live);
	for (size_t i = 0; i < w->pieces.count; i++)
		block_number(to, w->pieces.items[i].blocks);
	for (size_t i = 0; i < w->pieces.count; i++)
		block_number(to, w->pieces.items[i].holes);
	for (size_t i = 0; i < w->pieces.count; i++)
		if (w->pieces.items[i].blocks)
			block_next(&births, w->pieces.items[i].birth_ns);
}

static void write_sites(struct page *page, const struct space_map *map, struct str *to)
{
	size_t count = num_least(map->callsites.count, SITES_MAX);

	block_number(to, count);
	for (size_t i = 0; i < count; i++) {
		const struct map_callsite *c = &map->callsites.items[i];

		block_text(&page->texts, to, c->function);
		block_text(&page->texts, to, c->file);
		block_number(to, c->line);
		block_number(to, c->bytes);
		block_number(to, c->blocks);
	}
}

void layout_write(struct page *page, const struct space_map *map, uint64_t segments,
    uint64_t pieces, struct str *to)
{
	struct writer w = {.map = map};
	uint64_t least = smallest_shown(map, segments), widest = 0;

	for (size_t i = 0; i < map->segments.count; i++)
		widest =
		    num_most(widest, map->segments.items[i].end - map->segments.items[i].start);
	/* Thicker and thicker, until they fit. */
	for (w.thin = 0; !w.failed; w.thin = w.thin ? w.thin * 2 : widest / THIN_PART + 1) {
		w.pieces.count = w.counts.count = 0;
		for (size_t i = 0; i < map->segments.count; i++)
			if (map->segments.items[i].end - map->segments.items[i].start >= least)
				merge_segment(&w, &map->segments.items[i]);
		if (w.pieces.count <= pieces || w.thin > widest)
			break;
	}
	block_number(to, map->bytes);
	block_number(to, map->live_bytes);
	block_number(to, map->live_blocks);
	block_number(to, map->holes);
	block_number(to, map->hole_bytes);
	block_number(to, map->largest_hole);
	block_number(to, map->hidden_bytes);
	block_number(to, map->request);
	block_number(to, map->room.found);
	if (map->room.found) {
		const struct map_piece *p = &map->pieces.items[map->room.first];

		block_number(to, p->start);
		block_number(to, p[map->room.count - 1].end - p->start);
		block_number(to, map->room.bytes);
		block_number(to, map->room.blocks);
	}
	write_sites(page, map, to);
	write_segments(&w, least, to);
	write_pieces(&w, to);
	to->failed |= w.failed;
	vec_free(&w.pieces);
	vec_free(&w.counts);
}
