/*
 * series.c - see series.h. The thresholds are shares and ranks, never sizes, so that scaling a
 * program changes nothing.
 */
#include "model/callsite/series.h"

#include "model/callsite/trend.h"

/* A series is said to rise when at least three in four of its pairs do (tau 0.5), and its end is
 * half as large again as its beginning. The second half must still rise, beyond what chance makes
 * of 32 values that have no trend (tau's deviation is then 0.12). */
#define RISES_TAU 0.5
#define RISES_LATE 0.3
#define RISES_FACTOR 1.5

/* It rose once, nearly by all of it, and stayed: work of another size, and no growth. */
#define JUMP_SHARE 0.85

static bool is_one_jump(const double *sizes, size_t n)
{
	double top = sizes[0], largest = 0;

	for (size_t i = 1; i < n; i++) {
		if (sizes[i] <= top)
			continue;
		if (sizes[i] - top > largest)
			largest = sizes[i] - top;
		top = sizes[i];
	}
	return largest > JUMP_SHARE * (top - sizes[0]);
}

/* Of all that it rose so little came in its last quarter: with even growth a quarter does, with
 * that of a logarithm, from one to hundreds, a twentieth. */
#define OVER_PART 64.0
#define OVER_MIN 8u

/* What the larger half of them are like: smaller ones among them say nothing, nor does a single one
 * that is larger. */
static double large(const double *sizes, size_t n)
{
	double least = trend_median(sizes, n), large[CALLSITE_STEPS];
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (sizes[i] >= least)
			large[count++] = sizes[i];
	return trend_median(large, count);
}

/* It rose, and is done with that: what chance, or one more digit of a number, makes of the rest is
 * no growth. What is told as sums has no quarters. */
static bool has_levelled_off(const struct series *s, const double *sizes, double rise)
{
	size_t n = s->count, quarter = n / 4;

	return n >= OVER_MIN && !s->sums &&
	       large(sizes + n - quarter, quarter) - large(sizes + n - 2 * quarter, quarter) <
		   rise / OVER_PART;
}

/* How many values the first eighth of its blocks have. Values stand for as many blocks each, but
 * for those that a checkpoint tells as a sum: few, and most of what was. */
static size_t first_eighth(const struct series *s)
{
	uint64_t all = 0, so_far = 0;
	size_t n = 0;

	if (!s->sums)
		return s->count / 8 ? s->count / 8 : 1;
	for (size_t i = 0; i < s->count; i++)
		all += s->blocks[i];
	do
		so_far += s->blocks[n++];
	while (n < s->count / 8 && so_far < all / 8);
	return n;
}

bool series_rises(const struct callsite *p)
{
	return p->size.tau >= RISES_TAU && p->size.tau_late >= RISES_LATE;
}

void series_judge(const struct series *s, struct callsite *p)
{
	size_t n = s->count, quarter = n / 4 ? n / 4 : 1, half = n / 2;
	double sizes[CALLSITE_STEPS];

	p->size.count = (uint32_t)n;
	if (!n) /* it only released, as far as was seen */
		return;
	for (size_t i = 0; i < n; i++) {
		p->size.at[i] = s->at[i];
		sizes[i] = s->at[i].size;
	}
	p->size.start = (uint64_t)sizes[0];
	p->size.first = (uint64_t)trend_median(sizes, first_eighth(s));
	p->size.last = (uint64_t)trend_median(sizes + n - quarter, quarter);
	p->size.tau = p->size.tau_late = 0;
	p->size.grows = p->size.geometric = false;
	if (n < SERIES_MIN)
		return;
	p->size.tau = trend_tau(sizes, n);
	p->size.tau_late = trend_tau(sizes + half, n - half);
	p->size.geometric = trend_geometric(sizes, n);
	p->size.grows = series_rises(p) &&
			(double)p->size.last >= RISES_FACTOR * (double)p->size.first &&
			!is_one_jump(sizes, n) &&
			!has_levelled_off(s, sizes, (double)p->size.last - (double)p->size.first);
}

void series_coarser(struct series *s, size_t width)
{
	size_t n = 0;

	for (size_t i = 0; i < s->count; i += width, n++) {
		struct size_at top = s->at[i];
		uint64_t blocks = s->blocks[i];

		for (size_t k = i + 1; k < i + width && k < s->count; k++) {
			blocks += s->blocks[k];
			if (s->at[k].size > top.size)
				top = s->at[k];
		}
		s->at[n] = top;
		s->blocks[n] = blocks;
	}
	s->count = n;
}

/* Where blocks are handed out larger than what was asked for, by less than so much, the smallest of
 * those that may have been asked for alike says best what it was. */
static double asked_for(uint64_t max, uint64_t min, uint64_t padding)
{
	return (double)(padding && min > padding && max - min < padding ? min : max);
}

void series_of_stack_stats(const struct stack_stats *stats, uint64_t padding, struct series *out)
{
	struct cohort own;

	out->count = 0;
	out->sums = false;
	for (uint32_t i = 0, used = stack_stats_used(stats); i < used; i++) {
		const struct cohort *c = stack_stats_cohort(stats, i, &own);

		if (!c->count)
			continue;
		out->at[out->count] =
		    (struct size_at){c->last_ns, asked_for(c->max, c->min, padding)};
		out->blocks[out->count++] = c->count;
		out->sums |= c->went_count > 0;
	}
}

/* Steps are in the order of their beginnings, and what is large in one that grows comes at its end:
 * one way to the line may have long steps, another short ones among them. */
void series_of_steps(const struct callsite *p, uint64_t padding, struct series *out)
{
	out->count = 0;
	out->sums = false;
	for (uint32_t i = 0; i < p->step_count; i++) {
		const struct step *from = &p->steps[i];
		struct size_at at = {from->last_ns, asked_for(from->max, from->min, padding)};
		size_t k = out->count++;

		for (; k && out->at[k - 1].time_ns > at.time_ns; k--) {
			out->at[k] = out->at[k - 1];
			out->blocks[k] = out->blocks[k - 1];
		}
		out->at[k] = at;
		out->blocks[k] = from->count;
		out->sums |= from->went_count > 0;
	}
}
