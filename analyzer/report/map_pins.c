/* map_pins.c - the stacks that hold a stretch of a map. */
#include <stdlib.h>

#include "report/map.h"
#include "util/vec.h"

static int by_bytes(const void *a, const void *b)
{
	const struct map_pin *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->stats < y->stats ? -1 : x->stats > y->stats;
}

int map_pins(
    const struct space_map *map, size_t first, size_t count, struct map_pin *pins, unsigned room)
{
	VEC(struct map_pin) all = {0};
	struct map seen = {0};
	int rc = -1;

	for (size_t i = first; i < first + count; i++) {
		const struct map_piece *p = &map->pieces.items[i];
		uint64_t *slot;

		if (p->callsite == MAP_HOLE)
			continue;
		slot = map_put(&seen, p->callsite);
		if (!slot)
			goto out;
		if (!*slot) {
			if (vec_push(&all, (struct map_pin){.stats = p->callsite}))
				goto out;
			*slot = all.count;
		}
		all.items[*slot - 1].bytes += p->end - p->start;
		all.items[*slot - 1].blocks++;
	}
	if (all.count)
		qsort(all.items, all.count, sizeof(*all.items), by_bytes);
	for (size_t i = 0; i < all.count && i < room; i++)
		pins[i] = all.items[i];
	rc = (int)all.count;
out:
	map_free(&seen);
	vec_free(&all);
	return rc;
}
