/* holes.c - see holes.h. */
#include "watch/holes.h"

#include "model/space/space_map.h"
#include "util/num.h"

int holes_measure(
    const struct model *m, const struct space *sp, uint64_t request, struct holes *out)
{
	struct space_map map;
	int r = space_map_make(m, sp, 0, &map);

	if (r)
		return r;
	*out = (struct holes){map.hole_bytes, map.largest_hole, 0};
	for (size_t i = 0; i < map.pieces.count; i++) {
		const struct map_piece *p = &map.pieces.items[i];

		if (p->callsite == MAP_HOLE && p->end - p->start >= request)
			out->usable += p->end - p->start;
	}
	space_map_fini(&map);
	return 0;
}

double holes_unusable(const struct holes *h, uint64_t left, uint64_t request)
{
	uint64_t all = num_sum(h->bytes, left);

	if (!all)
		return 0;
	return (double)(all - h->usable - (left >= request ? left : 0)) / (double)all;
}

uint64_t holes_largest_request(const struct model *m)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < m->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);

		if (model_has_callsites(m, s->kind))
			largest = num_most(largest, stack_stats_largest(s));
	}
	return largest;
}
