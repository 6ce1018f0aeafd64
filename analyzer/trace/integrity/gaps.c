#include "trace/integrity/gaps.h"

void gaps_fini(struct gaps *g)
{
	vec_free(&g->list);
}

void gaps_rewind(struct gaps *g)
{
	g->at = 0;
	g->inside = g->noting = false;
}

static void drop(struct gaps *g)
{
	*g->room += (uint32_t)(g->list.count - g->known);
	g->list.count = g->known;
}

void gaps_begin(struct gaps *g, uint32_t chunk)
{
	g->inside = false;
	g->noting = chunk == g->chunks && !g->full;
	if (g->noting)
		drop(g); /* an earlier pass may have left it half-way */
}

void gaps_leave(struct gaps *g, uint32_t chunk, uint32_t at, uint64_t ticks)
{
	if (!g->inside)
		return;
	g->inside = false;
	if (!g->noting || at - g->from < GAP_MIN)
		return;
	if (*g->room && !vec_push(&g->list, (struct gap){ticks, chunk, g->from, at})) {
		--*g->room;
		return;
	}
	drop(g);
	g->full = true;
	g->noting = false;
}

void gaps_end(struct gaps *g, bool sound)
{
	if (!g->noting)
		return;
	g->noting = false;
	if (!sound)
		drop(g);
	g->known = g->list.count;
	g->chunks++;
}

const struct gap *gaps_find(struct gaps *g, uint32_t chunk, uint32_t at)
{
	const struct gap *gap = NULL;

	for (; g->at < g->known; g->at++) {
		gap = &g->list.items[g->at];
		if (gap->chunk > chunk || (gap->chunk == chunk && gap->from >= at))
			break;
	}
	return g->at < g->known && gap->chunk == chunk && gap->from == at ? gap : NULL;
}
