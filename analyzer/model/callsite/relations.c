/* relations.c - which call site's blocks follow from another one's kept blocks. */
#include "model/callsite/callsite_parts.h"

#include <math.h>

#include "model/callsite/trend.h"
#include "util/tuned.h"

TUNED(double, FEED_CORRELATION, 0.9,
    "prompts vary by the question, beside the history that they contain");
TUNED(
    double, FEED_SLOPE, 0.2, "a prompt that contains a fifth of what is kept is still made of it");
TUNED(double, LIST_CORRELATION, 0.98, "a list of pointers has exactly as many entries as are kept");
TUNED(double, LIST_BYTES_LEAST, 4.0, "the smallest entry is an index of 32 bits");
TUNED(double, LIST_BYTES_MOST, 128.0, "the largest entry is the slot of a hash table with its key");
TUNED(unsigned, LIST_VALUES_MIN, 8u, "fewer sizes follow a number of entries by chance");
TUNED(unsigned, LIST_TIMES_FEWER, 32u,
    "a list is made about as often as an entry is added, or for a batch of them");
TUNED(double, COPY_CORRELATION, 0.97, "copies are as large as the state, but for its header");
TUNED(double, COPY_SLOPE_LEAST, 0.2, "text packs to a fifth");
TUNED(double, COPY_SLOPE_MOST, 4.0, "escaped text takes up to four bytes a character");
TUNED(double, PIECES_SLOPE_LEAST, 1.0 / 32,
    "of a copy in pieces the small ones lie in arenas and are not seen");
TUNED(double, HALFWAY_SHARE, 0.375,
    "half-way a quarter of the copies of a growing state is there, of other things half");
TUNED(unsigned, COPIES_PART, 16u,
    "a smaller call site decides nothing, and the search is a double loop");
TUNED(double, ALIKE_TIMES, 1.5,
    "the last of copies that grow from nothing is nearly twice their mean");
TUNED(double, CREEPS_FACTOR, 1.1, "a state that grows by less is no larger than rounding makes it");
TUNED(double, AS_LARGE_PART, 16.0,
    "an allocator rounds a block up by at most 1/8, half of it on average");
TUNED(
    unsigned, KEEPER_PART, 1024u, "a smaller one decides nothing, and the search is a double loop");

/* A keeper feeds another call site's blocks when these grow in proportion to its kept bytes, by a
 * large part of them: a prompt made from the whole conversation. An index grows with them, too, but
 * by a factor at a time, and is no larger than its entries. */

/* Return the correlation of a grower's blocks with the keeper's kept bytes or blocks. */
static double together(
    const struct callsite *k, const struct callsite *g, survivors_until_t kept, double *slope)
{
	double x[CALLSITE_STEPS], y[CALLSITE_STEPS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->size.count; i++) {
		if (g->size.at[i].time_ns < k->facts.steps[0].time_ns)
			continue;
		x[n] = kept(k, g->size.at[i].time_ns);
		y[n++] = g->size.at[i].size;
	}
	*slope = 0;
	return n < SIZES_MIN ? 0 : trend_fit(x, y, n, slope);
}

static void relate(struct callsites *p, uint32_t keeper, uint32_t grower)
{
	struct callsite *k = &p->list[keeper], *g = &p->list[grower];
	double slope;

	if (together(k, g, survivors_bytes_until, &slope) < FEED_CORRELATION || slope <= 0)
		return;
	if (g->size.geometric && g->size.last <= k->survivors.bytes) {
		if (g->relations.index_of == CALLSITE_NONE ||
		    p->list[g->relations.index_of].survivors.bytes < k->survivors.bytes)
			g->relations.index_of = keeper;
		return;
	}
	if (slope >= FEED_SLOPE &&
	    (k->relations.feeds == CALLSITE_NONE || slope > k->relations.feed_slope)) {
		k->relations.feeds = grower;
		k->relations.feed_slope = slope;
	}
}

/* A list of everything kept, made anew at each step: its size is proportional to the number of kept
 * blocks, a few bytes each (a pointer, or a slot of a table), without jumps, and it is made about
 * as often as an entry is added. */

static void relate_list(struct callsites *p, uint32_t keeper, uint32_t grower)
{
	struct callsite *k = &p->list[keeper], *g = &p->list[grower];
	double slope;

	/* A block that realloc enlarges again and again is a container's table, no list of a step.
	 */
	if (k->relations.listed_by != CALLSITE_NONE || g->size.geometric ||
	    g->facts.regrown > g->facts.total_count / 2 || g->size.count < LIST_VALUES_MIN ||
	    g->facts.total_count < k->survivors.count / LIST_TIMES_FEWER)
		return;
	if (together(k, g, survivors_count_until, &slope) >= LIST_CORRELATION &&
	    slope >= LIST_BYTES_LEAST && slope <= LIST_BYTES_MOST)
		k->relations.listed_by = grower;
}

/* Kept copies of a state. Either one block is a whole copy, and as large as the state was then; or
 * a copy is many blocks, and the copies add up what the state held at each step. In both cases the
 * state exists beside them, and its copies outweigh it. */

/* Return the largest block's size at that time, if the call site replaces its buffer repeatedly. */
static double buffer_then(const struct callsite *p, uint64_t time_ns)
{
	double size = 0;

	for (uint32_t i = 0; i < p->size.count && p->size.at[i].time_ns <= time_ns; i++)
		size = p->size.at[i].size;
	return size;
}

/* True if it keeps its blocks. Later steps take longer, since there is more to copy, so the last
 * third of the time does not count here. */
static bool is_state(const struct callsite *p)
{
	return p->survivors.count >= SIZES_MIN && p->survivors.even >= SURVIVORS_EVEN &&
	       (!p->size.grows || (double)p->size.last * (double)p->survivors.count <=
				      ALIKE_TIMES * (double)p->survivors.bytes);
}

/* True if the state grows little beside its initial size: its copies are as large as it is. */
static bool creeps(const struct callsite *p)
{
	return sizes_rise(&p->size) &&
	       (double)p->size.last >= CREEPS_FACTOR * (double)p->size.first;
}

static bool as_large(const double *x, const double *y, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (fabs(x[i] - y[i]) > y[i] / AS_LARGE_PART)
			return false;
	return true;
}

/* Return how closely the blocks of `c` follow the bytes that `state` held; 0: not at all. */
static double copies_whole(const struct callsite *c, const struct callsite *state)
{
	double x[CALLSITE_STEPS], y[CALLSITE_STEPS], slope, fit;
	bool buffer = (state->size.grows || creeps(state)) && !state->survivors.stays;
	uint32_t n = 0;

	if ((!c->size.grows && !creeps(c)) || (!buffer && !is_state(state)))
		return 0;
	for (uint32_t i = 0; i < c->size.count; i++) {
		x[n] = buffer ? buffer_then(state, c->size.at[i].time_ns)
			      : survivors_bytes_until(state, c->size.at[i].time_ns);
		y[n++] = c->size.at[i].size;
	}
	fit = n < SIZES_MIN ? 0 : trend_fit(x, y, n, &slope);
	if (!c->size.grows && !as_large(x, y, n))
		return 0;
	return fit >= COPY_CORRELATION && slope >= COPY_SLOPE_LEAST && slope <= COPY_SLOPE_MOST
		   ? fit
		   : 0;
}

/* True if a quarter of the copies exists when the state is half-way from `first_ns` on; of blocks
 * that merely grow with it, half would. Tested by bytes and by blocks, since one block that is
 * larger than all others is no growth. `copies`: after each of its steps. */
static bool is_convex(const struct callsite *state, const double *copies, uint32_t n,
    uint64_t first_ns, survivors_until_t kept)
{
	double before = kept(state, first_ns);
	double all = kept(state, state->facts.steps[n - 1].last_ns);

	for (uint32_t i = 0; i < n; i++)
		if (kept(state, state->facts.steps[i].last_ns) >= before + (all - before) / 2)
			return copies[i] <= HALFWAY_SHARE * copies[n - 1];
	return false;
}

/* The same for copies of many blocks: the kept bytes follow the sum, over the steps, of what the
 * state held. This sum is convex. */
static double copies_in_pieces(const struct callsite *c, const struct callsite *state)
{
	double x[CALLSITE_STEPS], y[CALLSITE_STEPS], held = 0, sum = 0, slope, fit;
	uint32_t n = 0;

	if (c->size.grows || !is_state(state) || state->survivors.count < 4 * SIZES_MIN ||
	    state->facts.step_count < 2 * SIZES_MIN)
		return 0;
	for (uint32_t i = 0; i < state->facts.step_count; i++) {
		const struct step *s = &state->facts.steps[i];
		double added = (double)(s->bytes - s->freed_bytes);

		sum += ((double)held + added / 2) * (double)(s->count - s->freed_count);
		held += added;
		x[n] = sum;
		y[n++] = survivors_bytes_until(c, s->last_ns);
	}
	if (!is_convex(state, y, n, c->facts.first_ns, survivors_bytes_until) ||
	    !is_convex(state, y, n, c->facts.first_ns, survivors_count_until))
		return 0;
	fit = trend_fit(x, y, n, &slope);
	return fit >= COPY_CORRELATION && slope >= PIECES_SLOPE_LEAST && slope <= COPY_SLOPE_MOST
		   ? fit
		   : 0;
}

static void find_state(struct callsites *p, uint32_t copies)
{
	struct callsite *c = &p->list[copies];
	double best = 0, fit;

	for (uint32_t i = 0; i < p->count; i++) {
		const struct callsite *state = &p->list[i];
		uint64_t held = is_state(state) ? state->survivors.bytes : state->size.last;

		if (i == copies || held < c->facts.largest / 8 || held > c->survivors.bytes / 4 ||
		    !state->facts.step_count)
			continue;
		fit = fmax(copies_whole(c, state), copies_in_pieces(c, state));
		if (fit > best) {
			best = fit;
			c->relations.copies_of = i;
		}
	}
}

void relations_read(struct callsites *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (callsite_indexes_itself(&p->list[i]))
			p->list[i].relations.index_of = i;
	for (uint32_t k = 0; k < p->count; k++) {
		const struct callsite *keeper = &p->list[k];

		if (!keeper->survivors.stays ||
		    (keeper->size.grows && keeper->relations.index_of != k) ||
		    keeper->survivors.bytes < (p->live_bytes + p->map_bytes) / KEEPER_PART)
			continue;
		for (uint32_t g = 0; g < p->count; g++) {
			if (g == k || !p->list[g].size.grows || p->list[g].relations.index_of == g)
				continue;
			if (p->list[g].size.last >= (p->live_bytes + p->map_bytes) / KEEPER_PART)
				relate(p, k, g);
			relate_list(p, k, g);
		}
	}
	for (uint32_t c = 0; c < p->count; c++)
		if (p->list[c].survivors.stays &&
		    p->list[c].survivors.bytes >= (p->live_bytes + p->map_bytes) / COPIES_PART)
			find_state(p, c);
}
