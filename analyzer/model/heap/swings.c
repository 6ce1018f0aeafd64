#include "model/heap/swings.h"

#include <string.h>

#include "util/num.h"
#include "util/sort.h"

/* Return the median top of the periods from `from` until `until`. */
static uint64_t median_top(const struct timeline *t, uint32_t from, uint32_t until)
{
	uint64_t tops[TIMELINE_PERIODS];
	uint32_t count = 0;

	for (uint32_t i = from; i < until; i++)
		if (t->periods[i].events)
			tops[count++] = t->periods[i].most;
	return sort_median(tops, count);
}

static uint32_t lowest(const struct timeline *t, uint32_t from, uint32_t until)
{
	uint32_t at = from;

	for (uint32_t i = from; i < until; i++)
		if (t->periods[i].least <= t->periods[at].least)
			at = i;
	return at;
}

static uint32_t count_swings(
    const struct timeline *t, uint32_t from, uint32_t until, uint64_t low, uint64_t high)
{
	uint64_t third = (high - low) / 3;
	uint32_t count = 0;
	bool down = false;

	/* A period begins where the one before ended: after a top, its own top comes first. */
	for (uint32_t i = from; i < until; i++) {
		const struct period *p = &t->periods[i];

		if (down && p->most >= high - third) {
			count++;
			down = p->last <= low + third;
		} else if (!down) {
			down = p->least <= low + third && p->last < high - third;
		}
	}
	return count;
}

void swings_find(const struct timeline *t, uint64_t moment_ns, struct swings *out)
{
	uint64_t index = moment_ns >> t->shift, usual;
	uint32_t until = index < t->used ? (uint32_t)index : t->used, start = 0, end, half;

	memset(out, 0, sizeof(*out));
	usual = median_top(t, 0, until);
	while (start < until && t->periods[start].most < usual)
		start++;
	if (until - start < 4)
		return;
	end = lowest(t, until - (until - start) / 4, until);
	half = start + (end - start) / 2;
	out->low = t->periods[end].least;
	/* The first top is the end of the start: what was low in its period is of the start. */
	out->low_early =
	    t->periods[lowest(t, start + 1, half > start + 1 ? half : start + 2)].least;
	out->usual = median_top(t, start, end);
	for (uint32_t i = start; i < end; i++)
		out->highest = num_most(out->highest, t->periods[i].most);
	out->early = median_top(t, start, half);
	out->late = median_top(t, half, end);
	if (out->highest > out->low)
		out->count =
		    count_swings(t, start, end, num_least(out->low, out->low_early), out->highest);
}
