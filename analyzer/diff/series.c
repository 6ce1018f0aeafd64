/* series.c - see series.h. */
#include "diff/series.h"

#include <errno.h>

#include "util/num.h"

/* Begin the next parts, until this one, with the live bytes that they find. */
static void reach(struct series *s, uint32_t part)
{
	if (s->part < SERIES_LATE && part >= SERIES_LATE)
		s->early_count = s->now.total_count;
	for (; s->part < part; s->part++) {
		if (!s->parts)
			continue;
		s->parts->top[s->part + 1] = s->now.live;
		s->parts->low[s->part + 1] = s->now.live;
	}
}

int series_acquire(
    struct series *s, struct arena *arena, uint32_t part, uint32_t thread, struct alike blocks)
{
	reach(s, part < SERIES_PARTS ? part : SERIES_PARTS - 1);
	if (!s->parts && s->now.live + blocks.bytes >= SERIES_LEAST) {
		s->parts = arena_alloc(arena, sizeof(*s->parts));
		if (!s->parts)
			return -ENOMEM;
	}
	s->now.live += blocks.bytes;
	s->now.count += blocks.count;
	s->now.variance += blocks.variance;
	s->sampled |= blocks.variance > 0;
	s->now.total += blocks.bytes;
	s->now.total_count += blocks.count;
	s->now.squares += (double)blocks.bytes * (double)blocks.size + blocks.variance;
	s->largest = num_most(s->largest, blocks.size);
	s->threads |= 1ull << (thread % 64);
	s->now.high = num_most(s->now.high, s->now.live);
	if (s->parts)
		s->parts->top[s->part] = num_most(s->parts->top[s->part], s->now.live);
	return 0;
}

void series_release(struct series *s, uint32_t part, struct alike blocks)
{
	reach(s, part < SERIES_PARTS ? part : SERIES_PARTS - 1);
	s->now.live = num_less(s->now.live, blocks.bytes);
	s->now.count = num_less(s->now.count, blocks.count);
	s->now.variance = s->now.live && s->now.variance > blocks.variance
			      ? s->now.variance - blocks.variance
			      : 0;
	if (s->parts)
		s->parts->low[s->part] = num_least(s->parts->low[s->part], s->now.live);
	/* The program's end, which releases all, shows nothing of a line. */
	if (s->part < SERIES_PARTS - 1)
		s->now.fall = num_most(s->now.fall, s->now.high - s->now.live);
}

void series_finish(struct series *s)
{
	reach(s, SERIES_PARTS - 1);
}
