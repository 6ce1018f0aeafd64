/* proportion.c - compares sizes by their logarithms: each pair weighs the same, and a container
 * that doubles is off by a constant at most. See proportion.h. */
#include "model/callsite/proportion.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/callsite.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(unsigned, LARGE_PART, 64u, "a smaller request decides nothing beside what lives");
TUNED(unsigned, SMALL_PART, 4096u, "smaller blocks of the line belong to a buffer and are none");
TUNED(double, FAR_TIMES, 2.0,
    "the pairs that make the line are at most half as large as the one to be explained");
TUNED(unsigned, NEAR_MOST, 2u, "one earlier pair of that size may be a retry");
TUNED(double, PAIRS_MIN, 5.0, "a line through four points fits by chance");
TUNED(double, SPREAD_MIN, 1.5, "sizes that differ by less show no slope");
TUNED(double, FIT_MIN, 0.95,
    "a container that doubles is off by up to two, which leaves a correlation of 0.96");
TUNED(double, SLOPE_LEAST, 0.75, "a prompt that has a fixed part follows its input by less than 1");
TUNED(double, SLOPE_MOST, 2.25, "attention grows with the square, plus what a container rounds up");
TUNED(double, OFF_TIMES, 2.0, "the last block may be rounded up to the next power of two");

struct pairs {
	uint64_t since; /* largest block since the last block to explain */
	uint64_t carried; /* the largest before that */
	uint64_t at_target; /* the largest at the block to explain */
	uint32_t near; /* pairs of about the explained size, itself included */
	uint64_t size; /* of the block in the latest pair */
	uint32_t pairs, again; /* all; those as large as the previous one */
	double n, x, y, xx, yy, xy, least, most; /* sums of logarithms; least and most x */
};

/* Choose the call site that holds most, unless a refused request is large itself. */
static uint32_t choose(const struct callsites *p, uint64_t refused, uint64_t *target)
{
	uint64_t whole = p->live_bytes + p->map_bytes, most = 0;
	uint32_t at = CALLSITE_NONE;

	if (p->failed != CALLSITE_NONE && refused >= whole / LARGE_PART) {
		*target = refused;
		return p->failed;
	}
	for (uint32_t i = 0; i < p->count; i++) {
		const struct callsite *c = &p->list[i];

		if (c->facts.live_bytes > most && c->facts.live_bytes >= c->facts.largest) {
			most = c->facts.live_bytes;
			at = i;
		}
	}
	if (at == CALLSITE_NONE || p->list[at].facts.largest < whole / LARGE_PART)
		return CALLSITE_NONE;
	*target = p->list[at].facts.largest;
	return at;
}

int proportion_init(struct proportion *p, struct callsites *callsites, uint64_t refused)
{
	*p = (struct proportion){.callsites = callsites};
	p->callsite = choose(callsites, refused, &p->target);
	/* A call site that grows, or keeps its blocks, has its own explanation. */
	if (p->callsite != CALLSITE_NONE && callsites->list[p->callsite].survivors.stays)
		p->callsite = CALLSITE_NONE;
	if (p->callsite == CALLSITE_NONE)
		return 0;
	p->pairs = calloc(callsites->count + 1u, sizeof(*p->pairs));
	return p->pairs ? 0 : -ENOMEM;
}

static void add_pair(struct pairs *d, double x, double y)
{
	if (!d->n || x < d->least)
		d->least = x;
	if (!d->n || x > d->most)
		d->most = x;
	d->n++;
	d->x += x;
	d->y += y;
	d->xx += x * x;
	d->yy += y * y;
	d->xy += x * y;
}

static void pair_up(struct proportion *p, uint64_t size)
{
	bool near = (double)size * FAR_TIMES > (double)p->target;

	for (size_t i = 0; i < p->made.count; i++) {
		struct pairs *d = &p->pairs[p->made.items[i]];
		bool again = d->since == d->carried && size == d->size;

		d->pairs++;
		d->again += again;
		d->size = size;
		if (near)
			d->near += !again;
		else
			add_pair(d, log((double)d->since), log((double)size));
		d->carried = d->since;
		d->since = 0;
	}
	p->made.count = 0;
	for (uint32_t i = 0; size == p->target && i < p->callsites->count; i++)
		p->pairs[i].at_target = p->pairs[i].carried;
}

int proportion_apply(struct proportion *p, const struct event *e)
{
	struct pairs *d;
	uint32_t callsite;

	if (p->callsite == CALLSITE_NONE || e->kind != EV_ALLOC || !e->block || !e->block->size)
		return 0;
	callsite = callsites_of_stack(p->callsites, STACK_STATS_HEAP, e->block->stack);
	if (callsite == CALLSITE_NONE)
		return 0;
	if (callsite == p->callsite) {
		if (e->block->size >= p->target / SMALL_PART)
			pair_up(p, e->block->size);
		return 0;
	}
	d = &p->pairs[callsite];
	if (!d->since && vec_push(&p->made, callsite))
		return -ENOMEM;
	d->since = num_most(d->since, e->block->size);
	return 0;
}

/* Return the correlation with a line that also leads through the last pair; 0: no such line. */
static double fit_of(const struct pairs *d, uint64_t target, double *slope)
{
	double var_x, var_y, cov, fit, last = log((double)d->at_target);

	if (d->n < PAIRS_MIN || d->near > NEAR_MOST || !d->at_target ||
	    d->most - d->least < log(SPREAD_MIN) || last < d->most + log(FAR_TIMES) / SLOPE_MOST)
		return 0;
	var_x = d->xx - d->x * d->x / d->n;
	var_y = d->yy - d->y * d->y / d->n;
	cov = d->xy - d->x * d->y / d->n;
	if (var_x <= 0 || var_y <= 0)
		return 0;
	fit = cov / sqrt(var_x * var_y);
	*slope = cov / var_x;
	if (fit < FIT_MIN || *slope < SLOPE_LEAST || *slope > SLOPE_MOST ||
	    fabs(d->y / d->n + *slope * (last - d->x / d->n) - log((double)target)) >
		log(OFF_TIMES))
		return 0;
	return fit;
}

void proportion_finish(struct proportion *p)
{
	struct proportion_found *found = &p->callsites->proportion;
	uint64_t most = 0;

	if (p->callsite == CALLSITE_NONE)
		return;
	/* The refused request has no event. */
	if (p->callsite == p->callsites->failed &&
	    p->target != p->callsites->list[p->callsite].facts.largest)
		pair_up(p, p->target);
	for (uint32_t i = 0; i < p->callsites->count; i++) {
		const struct pairs *d = &p->pairs[i];
		double slope, fit = fit_of(d, p->target, &slope);

		/* The largest block on the way is its input, even if it is a copy. */
		if (fit <= 0 || d->at_target <= most)
			continue;
		most = d->at_target;
		*found = (struct proportion_found){.callsite = p->callsite,
		    .driver = i,
		    .target = p->target,
		    .input = d->at_target,
		    .typical = (uint64_t)exp(d->y / d->n),
		    .pairs = (uint64_t)d->n,
		    .fit = fit,
		    .slope = slope,
		    .layered = d->again > d->pairs / 2};
	}
}

void proportion_fini(struct proportion *p)
{
	free(p->pairs);
	vec_free(&p->made);
	memset(p, 0, sizeof(*p));
}
