#include "model/heap/teeth.h"

#include <string.h>

#include "util/num.h"
#include "util/sort.h"
#include "util/tuned.h"

TUNED(
    unsigned, FALL_PART, 16u, "a smaller fall is a block that came and went, not a request's end");
TUNED(unsigned, LOW_PART, 16u, "requests of one kind differ by less than that");

struct walk {
	uint64_t heights[2 * TIMELINE_PERIODS], floors[2 * TIMELINE_PERIODS];
	uint32_t count;
	bool falls;
	uint64_t from, top, low; /* of the current tooth; from 0: the first */
};

/* The first one rose from nothing, with all that is put in place. */
static void end_tooth(struct walk *w)
{
	if (w->from) {
		w->heights[w->count] = w->top - w->from;
		w->floors[w->count++] = w->low;
	}
	w->from = w->low;
}

static void step(struct walk *w, uint64_t live)
{
	if (!w->falls) {
		w->top = num_most(w->top, live);
		w->low = live;
		w->falls = live + w->top / FALL_PART < w->top;
		return;
	}
	w->low = num_least(w->low, live);
	if (live <= w->low + w->top / FALL_PART)
		return;
	end_tooth(w);
	w->falls = false;
	w->top = live;
}

/* Remove what is too low to be of the same work: the program's start has small teeth of its own. */
static void remove_low(struct walk *w)
{
	uint64_t highest = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < w->count; i++)
		highest = num_most(highest, w->heights[i]);
	for (uint32_t i = 0; i < w->count; i++) {
		if (w->heights[i] < highest / LOW_PART)
			continue;
		w->heights[count] = w->heights[i];
		w->floors[count++] = w->floors[i];
	}
	w->count = count;
}

void teeth_find(const struct timeline *t, uint64_t moment_ns, struct teeth *out)
{
	uint64_t index = moment_ns >> t->shift;
	uint32_t last = index < t->used ? (uint32_t)index : t->used - 1, half;
	struct walk w = {0};

	memset(out, 0, sizeof(*out));
	/* Where work goes on, the moment's period also has what came later. */
	if (last && last + 1 < t->used)
		last--;
	for (uint32_t i = 0; i <= last; i++) {
		const struct period *p = &t->periods[i];
		bool down = p->last - p->least < p->most - p->last;

		step(&w, down ? p->most : p->least);
		step(&w, down ? p->least : p->most);
		step(&w, p->last);
	}
	if (w.falls) /* the moment is in the fall */
		end_tooth(&w);
	remove_low(&w);
	if (!w.count)
		return;
	half = w.count / 2;
	out->count = w.count;
	out->middle = UINT64_MAX;
	out->last = w.floors[w.count - 1];
	for (uint32_t i = half; i < w.count; i++)
		out->middle = num_least(out->middle, w.floors[i]);
	out->early = sort_median(w.heights, half);
	out->late = sort_median(w.heights + half, w.count - half);
	out->median = sort_median(w.heights, w.count);
	out->highest = w.heights[w.count - 1];
}
