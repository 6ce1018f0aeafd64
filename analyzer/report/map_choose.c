/* map_choose.c - chooses the segments of a map to draw, and those that each stands for. */
#include <stdlib.h>

#include "report/map.h"

static int by_weight(const void *a, const void *b)
{
	const struct map_choice *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	if (x->size != y->size)
		return x->size < y->size ? 1 : -1;
	return x->segment < y->segment ? -1 : x->segment > y->segment;
}

static int by_address(const void *a, const void *b)
{
	const struct map_choice *x = a, *y = b;

	return x->segment < y->segment ? -1 : x->segment > y->segment;
}

static uint64_t layout_hash(const struct space_map *map, const struct map_segment *s)
{
	uint64_t h = map_hash(s->end - s->start);

	for (size_t i = s->first; i < s->first + s->count; i++) {
		const struct map_piece *p = &map->pieces.items[i];

		h = map_hash(h ^ (p->end - s->start));
		h = map_hash(h ^ p->callsite);
	}
	return h;
}

/* Returns whether both have blocks of the same call sites and sizes at the same offsets. */
static bool same_layout(
    const struct space_map *map, const struct map_segment *a, const struct map_segment *b)
{
	if (a->end - a->start != b->end - b->start || a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct map_piece *x = &map->pieces.items[a->first + i];
		const struct map_piece *y = &map->pieces.items[b->first + i];

		if (x->callsite != y->callsite || x->start - a->start != y->start - b->start ||
		    x->end - a->start != y->end - b->start)
			return false;
	}
	return true;
}

/* Folds segments of one layout into one choice, if `fold`. Returns the number of choices; -1: no
 * memory. */
static long gather(const struct space_map *map, bool fold, struct map_choice *list)
{
	const struct map_segment *segments = map->segments.items;
	struct map seen = {0};
	size_t used = 0;

	map_seed();
	for (size_t i = 0; i < map->segments.count; i++) {
		const struct map_segment *s = &segments[i];
		bool room = map->room.found && map->room.segment == i;
		/* The map points at the segment where room could be made, so it is never folded. */
		uint64_t *slot = fold && !room ? map_put(&seen, layout_hash(map, s)) : NULL;

		if (fold && !room && !slot) {
			map_free(&seen);
			return -1;
		}
		if (slot && *slot && same_layout(map, &segments[list[*slot - 1].segment], s)) {
			list[*slot - 1].like++;
			list[*slot - 1].weight += s->hole_bytes;
			continue;
		}
		list[used++] = (struct map_choice){.segment = i,
		    .weight = room ? UINT64_MAX : s->hole_bytes,
		    .size = s->end - s->start};
		if (slot)
			*slot = used;
	}
	map_free(&seen);
	return (long)used;
}

struct map_choice *map_choose(const struct space_map *map, uint32_t limit, size_t *count)
{
	struct map_choice *list = malloc((map->segments.count + 1) * sizeof(*list));
	long n = list ? gather(map, limit, list) : -1;

	*count = 0;
	if (n < 0) {
		free(list);
		return NULL;
	}
	if (n)
		qsort(list, (size_t)n, sizeof(*list), by_weight);
	*count = limit && limit < (size_t)n ? limit : (size_t)n;
	if (*count)
		qsort(list, *count, sizeof(*list), by_address);
	return list;
}
