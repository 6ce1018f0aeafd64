/* map_pins.c - the stacks that hold a stretch of a map. */
#include <stdlib.h>

#include "report/map.h"

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
	struct map_pin *all = NULL;
	struct map seen = {0};
	size_t used = 0, capacity = 0;
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
			if (used == capacity) {
				size_t more = capacity ? capacity * 2 : 16;
				struct map_pin *grown = realloc(all, more * sizeof(*grown));

				if (!grown)
					goto out;
				all = grown;
				capacity = more;
			}
			all[used++] = (struct map_pin){.stats = p->callsite};
			*slot = used;
		}
		all[*slot - 1].bytes += p->end - p->start;
		all[*slot - 1].blocks++;
	}
	if (used)
		qsort(all, used, sizeof(*all), by_bytes);
	for (size_t i = 0; i < used && i < room; i++)
		pins[i] = all[i];
	rc = (int)used;
out:
	map_free(&seen);
	free(all);
	return rc;
}
