/*
 * series.h - the live bytes of one line in one space, over the work that the process does: the
 * most and the fewest of each of SERIES_PARTS equal parts of its acquisitions, and how far the
 * bytes ever fell. It shows what a line varies by within one run. Constant work for an event.
 */
#ifndef ANALYZER_DIFF_SERIES_H
#define ANALYZER_DIFF_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/stack/stack_stats.h"
#include "util/arena.h"

#define SERIES_PARTS 32u
#define SERIES_LATE 24u /* the first part of the last quarter */
/* Bytes below which no history is kept: far less than any change that is called one. */
#define SERIES_LEAST 8192u

struct series_parts {
	uint64_t top[SERIES_PARTS]; /* the most live bytes in each part */
	uint64_t low[SERIES_PARTS]; /* the fewest: what it keeps */
};

struct series {
	struct series_sums {
		uint64_t live, count; /* bytes and blocks */
		double variance; /* of live, if it is estimated from a sample */
		uint64_t high; /* the most live bytes so far */
		uint64_t fall; /* the most that live was below `high`, before the last part */
		uint64_t total, total_count; /* ever acquired */
		double squares; /* sum of the squares of the blocks' sizes */
	} now, then; /* then: at the moment that is compared */
	uint64_t largest; /* block */
	uint64_t early_count; /* acquired before the last quarter of the parts */
	uint64_t threads; /* a bit for each thread that acquired, its number modulo 64 */
	uint32_t part; /* the current one */
	bool sampled; /* some blocks stand for others */
	struct series_parts *parts; /* NULL: it never held SERIES_LEAST */
};

/* Blocks were acquired in that part of the work. 0 or -ENOMEM. */
int series_acquire(
    struct series *s, struct arena *arena, uint32_t part, uint32_t thread, struct alike blocks);
void series_release(struct series *s, uint32_t part, struct alike blocks);
/* Keep the sums: it is the moment. */
static inline void series_mark(struct series *s)
{
	s->then = s->now;
}
/* Fill the parts until the last one. Call it at the end of the run. */
void series_finish(struct series *s);

static inline uint32_t series_threads(const struct series *s)
{
	return (uint32_t)__builtin_popcountll(s->threads);
}

#endif
