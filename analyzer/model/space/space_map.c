/*
 * space_map.c - gathers items and segments, sorts them, and puts each item into its segment. See
 * space_map.h.
 */
#include "model/space/space_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/blame.h"
#include "model/space/space_parts.h"
#include "util/num.h"
#include "util/text/str.h"
#include "util/tuned.h"

TUNED(uint64_t, RANGE_GAP, 32ull << 20,
    "a gap of more than one large segment of PyTorch (20 MiB) is no hole in a range");
TUNED(uint64_t, HOST_GAP, 1ull << 20,
    "larger holes of a heap are given back to the kernel, and are none of its own");

struct item {
	uint64_t start, end, birth_ns, stream;
	uint32_t stack;
};

struct gather {
	const struct model *m;
	const struct space *sp;
	struct space_map *map;
	VEC(struct item) items;
	struct blame_context context;
	struct map stacks; /* to 1 + stack */
	struct map callsites; /* hash of the words: to 1 + call site */
	int error;
};

/* An empty vector may have no array. */
static void sort(void *items, size_t count, size_t size, int (*by)(const void *, const void *))
{
	if (count)
		qsort(items, count, size, by);
}

/* Items and segments begin with their addresses. */
static int by_start(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b; /* start and end */

	if (x[0] != y[0])
		return x[0] < y[0] ? -1 : 1;
	return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* Find the index of the call site with these words, or create it. */
static int callsite_of_words(struct gather *g, const struct map_callsite *words, uint32_t *out)
{
	uint64_t h = str_hash(STR_HASH ^ words->line, words->function);

	for (h = str_hash(h, words->file);; h++) {
		uint64_t *slot = map_put(&g->callsites, h);
		const struct map_callsite *other;

		if (!slot)
			return -ENOMEM;
		if (!*slot) {
			if (vec_push(&g->map->callsites, *words))
				return -ENOMEM;
			*slot = g->map->callsites.count;
		}
		other = &g->map->callsites.items[*slot - 1];
		*out = (uint32_t)*slot - 1;
		if (other->line == words->line && str_same(other->function, words->function) &&
		    str_same(other->file, words->file))
			return 0;
	}
}

static int callsite_of(struct gather *g, uint32_t stack, uint32_t *out)
{
	const struct symbol *symbols = NULL;
	struct map_callsite words = {.stack = stack, .function = "(unknown)"};
	const struct feed *feed = &g->m->feed;
	uint64_t *slot = map_put(&g->stacks, stack);
	size_t count;
	int at;

	if (!slot)
		return -ENOMEM;
	if (*slot) {
		*out = (uint32_t)*slot - 1;
		return 0;
	}
	count = stack ? feed->symbols(feed->self, stack, &symbols) : 0;
	at = count ? blame_frame(&g->context, symbols, count) : -1;
	/* Where no frame is better than the library's, take its outermost one. */
	if (at < 0 && count)
		at = (int)count - 1;
	if (at >= 0) {
		words.function = symbols[at].function ? symbols[at].function : "(unknown)";
		words.file = symbols[at].file;
		words.line = symbols[at].line;
	}
	if (callsite_of_words(g, &words, out))
		return -ENOMEM;
	*slot = *out + 1;
	return 0;
}

static int add_segment(struct gather *g, const struct map_segment *segment)
{
	return vec_push(&g->map->segments, *segment);
}

/* PyTorch's segments are the driver's blocks, or runs of mappings, that have had its blocks. */
static void torch_segment(void *arg, const struct range *r)
{
	struct gather *g = arg;
	const struct space_block *b = spaces_block(g->m->spaces, (uint32_t)r->serial);
	struct map_segment *last =
	    g->map->segments.count ? &g->map->segments.items[g->map->segments.count - 1] : NULL;

	if (g->error || b->torch != g->sp->index + 1)
		return;
	if (r->kind == LAYOUT_MAPPING && last && last->mapped && last->end == r->start) {
		last->end = r->end;
		return;
	}
	g->error = add_segment(g, &(struct map_segment){.start = r->start,
				      .end = r->end,
				      .birth_ns = r->birth_ns,
				      .stack = r->stack,
				      .acquired = true,
				      .captured = b->captured,
				      .mapped = r->kind == LAYOUT_MAPPING});
}

static void mapping_item(void *arg, const struct range *r)
{
	struct gather *g = arg;
	const struct space_block *b = spaces_block(g->m->spaces, (uint32_t)r->serial);

	if (g->error || r->kind != LAYOUT_MAPPING ||
	    (b->space != g->sp->index && g->sp->kind != SPACE_VA))
		return;
	g->error = vec_push(
	    &g->items, (struct item){r->start, r->end, r->birth_ns, b->stream, b->block.stack});
}

static int gather_space(struct gather *g)
{
	const struct spaces *s = g->m->spaces;
	const struct space *sp = g->sp;
	int rc = 0;

	for (uint32_t i = 0; i < s->used && !rc; i++) {
		const struct space_block *b = spaces_block(s, i);

		if (!b->used || b->space != sp->index)
			continue;
		if (sp->kind == SPACE_VA) {
			rc = add_segment(g, &(struct map_segment){.start = b->block.address,
						.end = b->block.address + b->block.size,
						.birth_ns = b->block.birth_ns,
						.stack = b->block.stack,
						.acquired = true});
		} else if (b->flags & TRACE_SPACE_HANDLE) {
			if (!b->mapped) {
				g->map->hidden_bytes += b->block.size;
				g->map->hidden_blocks++;
			}
		} else if (b->block.size) {
			rc = vec_push(&g->items,
			    (struct item){b->block.address, b->block.address + b->block.size,
				b->block.birth_ns, b->stream, b->block.stack});
		}
	}
	if (!rc && sp->kind != SPACE_TORCH)
		ranges_each(&s->layout, mapping_item, g);
	if (!rc && sp->kind == SPACE_TORCH)
		ranges_each(&s->layout, torch_segment, g);
	return rc ? rc : g->error;
}

/* Items outside all segments make ranges of their own. */
static int add_ranges(struct gather *g, uint64_t gap)
{
	size_t given = g->map->segments.count, at = 0;
	struct map_segment run = {0};
	bool open = false;
	int rc = 0;

	sort(g->map->segments.items, given, sizeof(*g->map->segments.items), by_start);
	for (size_t i = 0; i < g->items.count && !rc; i++) {
		const struct item *item = &g->items.items[i];

		while (at < given && g->map->segments.items[at].end <= item->start)
			at++;
		if (at < given && g->map->segments.items[at].start <= item->start)
			continue;
		/* A run does not cross a segment. */
		if (open && (item->start > run.end + gap ||
				(at > 0 && g->map->segments.items[at - 1].start >= run.end))) {
			rc = add_segment(g, &run);
			open = false;
		}
		if (!open) {
			run = (struct map_segment){.start = item->start, .end = item->end};
			open = true;
		}
		run.end = num_most(run.end, item->end);
	}
	if (open && !rc)
		rc = add_segment(g, &run);
	sort(g->map->segments.items, g->map->segments.count, sizeof(*g->map->segments.items),
	    by_start);
	return rc;
}

static int add_hole(struct space_map *map, struct map_segment *to, uint64_t start, uint64_t end)
{
	uint64_t size = end - start;

	if (start >= end)
		return 0;
	to->holes++;
	to->hole_bytes += size;
	to->largest_hole = num_most(to->largest_hole, size);
	to->count++;
	return vec_push(
	    &map->pieces, (struct map_piece){.start = start, .end = end, .callsite = MAP_HOLE});
}

static int lay_out(struct gather *g)
{
	struct space_map *map = g->map;
	size_t next = 0;
	int rc = 0;

	for (size_t i = 0; i < map->segments.count && !rc; i++) {
		struct map_segment *to = &map->segments.items[i];
		uint64_t at = to->start;

		to->first = map->pieces.count;
		for (; next < g->items.count && g->items.items[next].start < to->end && !rc;
		     next++) {
			struct item *item = &g->items.items[next];
			struct map_piece piece = {.start = item->start < at ? at : item->start,
			    .end = item->end > to->end ? to->end : item->end,
			    .birth_ns = item->birth_ns,
			    .stream = item->stream,
			    .stack = item->stack};

			if (piece.start >= piece.end) /* overlaps another piece: damage */
				continue;
			if ((rc = add_hole(map, to, at, piece.start)) ||
			    (rc = callsite_of(g, item->stack, &piece.callsite)) ||
			    (rc = vec_push(&map->pieces, piece)))
				break;
			at = piece.end;
			to->count++;
			to->live_blocks++;
			to->live_bytes += piece.end - piece.start;
			map->callsites.items[piece.callsite].bytes += piece.end - piece.start;
			map->callsites.items[piece.callsite].blocks++;
		}
		if (!rc)
			rc = add_hole(map, to, at, to->end);
		map->bytes += to->end - to->start;
		map->live_bytes += to->live_bytes;
		map->live_blocks += to->live_blocks;
		map->holes += to->holes;
		map->hole_bytes += to->hole_bytes;
		map->largest_hole = num_most(map->largest_hole, to->largest_hole);
	}
	return rc;
}

/* Sort by bytes, most first, and renumber the pieces. */
static int sort_callsites(struct space_map *map)
{
	size_t n = map->callsites.count;
	VEC(struct map_callsite) sorted = {0};
	uint32_t *order = malloc((n + 1) * sizeof(*order));
	uint32_t *place = malloc((n + 1) * sizeof(*place));
	int rc = order && place ? vec_reach(&sorted, n) : -ENOMEM;

	if (rc)
		goto out;
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	/* Shell sort with halved gaps: call sites are few, so nothing faster is needed. */
	for (size_t gap = n / 2; gap > 0; gap /= 2)
		for (size_t i = gap; i < n; i++)
			for (size_t k = i;
			     k >= gap && map->callsites.items[order[k]].bytes >
					     map->callsites.items[order[k - gap]].bytes;
			     k -= gap) {
				uint32_t swap = order[k];
				order[k] = order[k - gap];
				order[k - gap] = swap;
			}
	for (size_t i = 0; i < n; i++) {
		sorted.items[i] = map->callsites.items[order[i]];
		place[order[i]] = (uint32_t)i;
	}
	for (size_t i = 0; i < map->pieces.count; i++)
		if (map->pieces.items[i].callsite != MAP_HOLE)
			map->pieces.items[i].callsite = place[map->pieces.items[i].callsite];
	for (size_t i = 0; i < n; i++)
		map->callsites.items[i] = sorted.items[i];
out:
	vec_free(&sorted);
	free(order);
	free(place);
	return rc;
}

/* Slide a window over each segment's pieces. */
static void find_room(struct space_map *map)
{
	for (size_t n = 0; n < map->segments.count && map->request; n++) {
		const struct map_segment *to = &map->segments.items[n];
		const struct map_piece *pieces = map->pieces.items + to->first;
		uint64_t bytes = 0, blocks = 0;
		size_t to_end = 0;

		if (to->end - to->start < map->request)
			continue;
		for (size_t from = 0; from < to->count; from++) {
			while (to_end < to->count &&
			       (to_end == from ||
				   pieces[to_end - 1].end - pieces[from].start < map->request)) {
				if (pieces[to_end].callsite != MAP_HOLE) {
					bytes += pieces[to_end].end - pieces[to_end].start;
					blocks++;
				}
				to_end++;
			}
			if (pieces[to_end - 1].end - pieces[from].start < map->request)
				break;
			if (!map->room.found || blocks < map->room.blocks ||
			    (blocks == map->room.blocks && bytes < map->room.bytes)) {
				map->room.found = true;
				map->room.segment = n;
				map->room.first = to->first + from;
				map->room.count = to_end - from;
				map->room.bytes = bytes;
				map->room.blocks = blocks;
			}
			if (pieces[from].callsite != MAP_HOLE) {
				bytes -= pieces[from].end - pieces[from].start;
				blocks--;
			}
		}
	}
}

static int finish(struct gather *g, uint64_t gap, int rc)
{
	const struct feed *feed = &g->m->feed;

	g->context.malloc_owner = feed->info(feed->self, "malloc.owner");
	g->context.interpreter = feed_interpreter(feed);
	if (!rc) {
		sort(g->items.items, g->items.count, sizeof(*g->items.items), by_start);
		rc = add_ranges(g, gap);
	}
	if (!rc && !(rc = lay_out(g)) && !(rc = sort_callsites(g->map)))
		find_room(g->map);
	vec_free(&g->items);
	map_free(&g->stacks);
	map_free(&g->callsites);
	if (rc)
		space_map_fini(g->map);
	return rc;
}

int space_map_make(
    const struct model *m, const struct space *sp, uint64_t request, struct space_map *out)
{
	struct gather g = {.m = m, .sp = sp, .map = out};

	memset(out, 0, sizeof(*out));
	memcpy(out->name, sp->name, sizeof(out->name));
	out->kind = sp->kind;
	out->request = request;
	return finish(&g, RANGE_GAP, gather_space(&g));
}

static int host_block(void *arg, const struct block *b)
{
	struct gather *g = arg;

	const struct ahead *ahead = &g->m->ahead;

	if (!b->size || b->address > UINT64_MAX - b->size)
		return 0;
	if (ahead->any && ahead->kind != EV_FREE && b->serial == ahead->block.serial)
		return 0;
	return vec_push(
	    &g->items, (struct item){b->address, b->address + b->size, b->birth_ns, 0, b->stack});
}

/* The allocator's own mappings are its blocks' segments; the program's own mappings are blocks. */
static void host_range(void *arg, const struct range *r)
{
	struct gather *g = arg;
	struct map_segment *last =
	    g->map->segments.count ? &g->map->segments.items[g->map->segments.count - 1] : NULL;

	if (g->error || r->kind == STACK_STATS_RESERVED ||
	    stack_stats_is_file((enum stack_stats_kind)r->kind))
		return;
	if (!(r->flags & TRACE_MAP_ALLOCATOR)) {
		g->error =
		    vec_push(&g->items, (struct item){r->start, r->end, r->birth_ns, 0, r->stack});
		return;
	}
	if (last && last->end == r->start) {
		last->end = r->end;
		return;
	}
	g->error = add_segment(g, &(struct map_segment){.start = r->start,
				      .end = r->end,
				      .birth_ns = r->birth_ns,
				      .stack = r->stack,
				      .acquired = true});
}

int space_map_host(const struct model *m,
    int (*each)(void *self, int (*fn)(void *arg, const struct block *b), void *arg), void *self,
    uint64_t request, struct space_map *out)
{
	struct gather g = {.m = m, .map = out};
	int rc;

	memset(out, 0, sizeof(*out));
	memcpy(out->name, "host", 5);
	out->host = true;
	out->request = request;
	rc = each(self, host_block, &g);
	if (!rc && m->ahead.any && m->ahead.kind == EV_FREE)
		rc = host_block(&g, &m->ahead.block);
	if (!rc)
		ranges_each(&m->maps.ranges, host_range, &g);
	return finish(&g, HOST_GAP, rc ? rc : g.error);
}

void space_map_fini(struct space_map *map)
{
	vec_free(&map->pieces);
	vec_free(&map->segments);
	vec_free(&map->callsites);
}
