/*
 * relations.c - see relations.h. The thresholds are shares and ranks, never sizes, so that scaling
 * a program changes nothing.
 */
#include "model/callsite/relations.h"

#include <math.h>

#include "model/callsite/callsite.h"
#include "model/callsite/trend.h"

/*
 * What a place keeps feeds another's blocks when these grow in proportion to it, by a good part of
 * its bytes: a prompt made of all that was said. An index grows with it as well, but by a factor at
 * a time, and holds no more than what it points to.
 */
#define FEED_CORRELATION 0.9
#define FEED_SLOPE 0.2

/* Correlation of a grower's blocks with what a keeper kept, in bytes or in blocks. */
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

/*
 * A list of everything kept, made anew at each step: its size follows the number of what is kept,
 * at some bytes each (a pointer, or a slot of a table), by even steps, since it is not enlarged but
 * made again; and that happens about as often as something is added.
 */
#define LIST_CORRELATION 0.98
#define LIST_BYTES_LEAST 4.0
#define LIST_BYTES_MOST 128.0
#define LIST_SIZES_MIN 8u
#define LIST_TIMES_FEWER 32u

static void relate_list(struct callsites *p, uint32_t keeper, uint32_t grower)
{
	struct callsite *k = &p->list[keeper], *g = &p->list[grower];
	double slope;

	if (k->relations.listed_by != CALLSITE_NONE || g->size.geometric ||
	    g->size.count < LIST_SIZES_MIN ||
	    g->facts.total_count < k->survivors.count / LIST_TIMES_FEWER)
		return;
	if (together(k, g, survivors_count_until, &slope) >= LIST_CORRELATION &&
	    slope >= LIST_BYTES_LEAST && slope <= LIST_BYTES_MOST)
		k->relations.listed_by = grower;
}

/*
 * Copies of a state, each kept: either one block holds it all, and is as large as the state was at
 * the time; or each copy is made of many blocks, and what is kept there is the sum of what the
 * state held at each step. In both cases the state is there besides, and the copies outweigh it.
 */
#define COPY_CORRELATION 0.97
/* Packed or escaped, and on its way through another form. */
#define COPY_SLOPE_LEAST 0.2
#define COPY_SLOPE_MOST 4.0
/* From this part of everything on, a place is worth the search. */
#define COPIES_PART 16u

/* The largest block of a place that replaces its buffer time and again, as it was at that time. */
static double buffer_then(const struct callsite *p, uint64_t time_ns)
{
	double size = 0;

	for (uint32_t i = 0; i < p->size.count && p->size.at[i].time_ns <= time_ns; i++)
		size = p->size.at[i].size;
	return size;
}

/* The last of what it keeps are no larger than the rest: of copies that grow from nothing they are
 * nearly twice as large. */
#define ALIKE_TIMES 1.5

/* It keeps what it makes. Each step takes longer than the one before, for there is more to copy:
 * the last third of the time adds less than that of the steps, and says nothing. */
static bool is_state(const struct callsite *p)
{
	return p->survivors.count >= SIZES_MIN && p->survivors.even >= 0.75 &&
	       (!p->size.grows || (double)p->size.last * (double)p->survivors.count <=
				      ALIKE_TIMES * (double)p->survivors.bytes);
}

/* A state that grows little, beside what it held from the start, is one all the same: its copies
 * are as large as it was, each time. */
#define CREEPS_FACTOR 1.1
#define AS_LARGE_PART 16.0

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

/* How closely the blocks of `c` follow what `state` held; 0: they do not. */
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

/*
 * Half-way by what the state got since `first_ns`, when there was none of them, a quarter of its
 * copies is there; of what grows along with it, half. By its bytes, and by its blocks, for one that
 * is larger than all others is no growth. `copies`: after each of its steps.
 */
static bool is_convex(const struct callsite *state, const double *copies, uint32_t n,
    uint64_t first_ns, survivors_until_t kept)
{
	double before = kept(state, first_ns);
	double all = kept(state, state->facts.steps[n - 1].last_ns);

	for (uint32_t i = 0; i < n; i++)
		if (kept(state, state->facts.steps[i].last_ns) >= before + (all - before) / 2)
			return copies[i] <= 0.375 * copies[n - 1];
	return false;
}

/* The same where a copy is many blocks: what is kept follows the sum of what the state held after
 * each of its blocks, which is convex, and not its last value. */
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
	return fit >= COPY_CORRELATION && slope >= 1.0 / 32 && slope <= COPY_SLOPE_MOST ? fit : 0;
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

/* From this part of everything on, what is kept is worth the search for what it feeds: this is a
 * double loop. */
#define KEEPER_PART 1024u

void relations_read(struct callsites *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (callsite_indexes_itself(&p->list[i]))
			p->list[i].relations.index_of = i;
	for (uint32_t k = 0; k < p->count; k++) {
		const struct callsite *keeper = &p->list[k];

		/* What is under a thousandth of the whole decides nothing, and this is a double
		 * loop. */
		if (!keeper->survivors.stays ||
		    (keeper->size.grows && keeper->relations.index_of != k) ||
		    keeper->survivors.bytes < (p->live_bytes + p->map_bytes) / 1024)
			continue;
		for (uint32_t g = 0; g < p->count; g++) {
			if (g == k || !p->list[g].size.grows || p->list[g].relations.index_of == g)
				continue;
			if (p->list[g].size.last >= (p->live_bytes + p->map_bytes) / 1024)
				relate(p, k, g);
			relate_list(p, k, g);
		}
	}
	for (uint32_t c = 0; c < p->count; c++)
		if (p->list[c].survivors.stays &&
		    p->list[c].survivors.bytes >= (p->live_bytes + p->map_bytes) / COPIES_PART)
			find_state(p, c);
}
