/*
 * sizes.c - see sizes.h. The thresholds are shares and ranks, never sizes, so that scaling a
 * program changes nothing.
 */
#include "model/callsite/sizes.h"

#include "model/callsite/callsite.h"
#include "model/callsite/trend.h"

/* Values of which a history is judged. */
struct series {
	struct size_at at[CALLSITE_STEPS];
	uint64_t blocks[CALLSITE_STEPS]; /* of each, how many it stands for */
	size_t count;
	bool sums; /* some are of what a checkpoint tells as one */
};

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

bool sizes_rise(const struct callsite_sizes *s)
{
	return s->tau >= RISES_TAU && s->tau_late >= RISES_LATE;
}

static void series_judge(const struct series *s, struct callsite_sizes *out)
{
	size_t n = s->count, quarter = n / 4 ? n / 4 : 1, half = n / 2;
	double sizes[CALLSITE_STEPS];

	out->count = (uint32_t)n;
	if (!n) /* it only released, as far as was seen */
		return;
	for (size_t i = 0; i < n; i++) {
		out->at[i] = s->at[i];
		sizes[i] = s->at[i].size;
	}
	out->start = (uint64_t)sizes[0];
	out->first = (uint64_t)trend_median(sizes, first_eighth(s));
	out->last = (uint64_t)trend_median(sizes + n - quarter, quarter);
	out->tau = out->tau_late = 0;
	out->grows = out->geometric = false;
	if (n < SIZES_MIN)
		return;
	out->tau = trend_tau(sizes, n);
	out->tau_late = trend_tau(sizes + half, n - half);
	out->geometric = trend_geometric(sizes, n);
	out->grows = sizes_rise(out) && (double)out->last >= RISES_FACTOR * (double)out->first &&
		     !is_one_jump(sizes, n) &&
		     !has_levelled_off(s, sizes, (double)out->last - (double)out->first);
}

/* The largest of every `width` values: a large block that comes once a turn is then not hidden by
 * the small ones around it. */
static void series_coarser(struct series *s, size_t width)
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

static void series_of_stack(const struct stack_stats *stats, uint64_t padding, struct series *out)
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
		out->sums |= c->summed_count > 0;
	}
}

/* Steps are in the order of their beginnings, and what is large in one that grows comes at its end:
 * one way to the line may have long steps, another short ones among them. */
static void series_of_steps(const struct callsite *p, uint64_t padding, struct series *out)
{
	out->count = 0;
	out->sums = false;
	for (uint32_t i = 0; i < p->facts.step_count; i++) {
		const struct step *from = &p->facts.steps[i];
		struct size_at at = {from->last_ns, asked_for(from->max, from->min, padding)};
		size_t k = out->count++;

		for (; k && out->at[k - 1].time_ns > at.time_ns; k--) {
			out->at[k] = out->at[k - 1];
			out->blocks[k] = out->blocks[k - 1];
		}
		out->at[k] = at;
		out->blocks[k] = from->count;
		out->sums |= from->summed_count > 0;
	}
}

/* Of blocks that live: those as large as their step's largest hold nearly all bytes, so their
 * number is that of bytes by size. */
static uint64_t grown_bytes(const struct callsite *p, uint64_t early_size)
{
	uint64_t grown = 0;

	for (uint32_t i = 0; i < p->facts.step_count; i++) {
		uint64_t alive = p->facts.steps[i].bytes - p->facts.steps[i].freed_bytes, blocks,
			 early;

		if (!alive || p->facts.steps[i].max <= early_size)
			continue;
		blocks = (alive + p->facts.steps[i].max - 1) / p->facts.steps[i].max;
		early = blocks * early_size;
		grown += alive > early ? alive - early : 0;
	}
	return grown < p->facts.live_bytes ? grown : p->facts.live_bytes;
}

/* So many that ended are what is usual, and one that is so many times as large is not. */
#define ENDED_MIN 8u
#define UNUSUAL_TIMES 4u

/*
 * What grew is one object, which realloc() enlarged again and again while little else was done, and
 * many like it that had ended before stayed small: one piece of work that is out of series, and no
 * growth from each to the next.
 */
static bool grew_within_one(
    const struct callsite *p, const struct callsite_member *members, size_t count)
{
	uint64_t ended = 0, largest = 0;

	for (size_t i = 0; i < count; i++) {
		ended += stack_stats_ended_count(members[i].at);
		if (stack_stats_ended_largest(members[i].at) > largest)
			largest = stack_stats_ended_largest(members[i].at);
	}
	for (size_t i = 0; i < count && ended >= ENDED_MIN; i++) {
		const struct stack_stats *s = members[i].at;
		const struct stack_stats_course c = stack_stats_course(s);

		if (c.object.serial && stack_stats_largest(s) == p->facts.largest &&
		    largest <= stack_stats_largest(s) / UNUSUAL_TIMES &&
		    c.object.first <= largest &&
		    c.object.acquired >= (c.object.until - c.object.before) / 2)
			return true;
	}
	return false;
}

/* A stack that made less of its call site's bytes does not speak for it. */
#define SPEAKS_PART 8u

void sizes_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    uint64_t padding, struct callsite_sizes *out)
{
	struct series s = {.count = 0};
	struct callsite_sizes best;
	uint64_t growing = 0; /* live bytes of all its stacks whose blocks grow */

	series_of_steps(c, padding, &s);
	if (!s.count)
		return;
	out->live_bytes = c->facts.live_bytes;
	series_judge(&s, out);
	if (!out->grows && s.count >= 8 * SIZES_MIN) {
		best = *out;
		series_coarser(&s, 4);
		series_judge(&s, &best);
		if (best.grows)
			*out = best;
	}
	for (size_t i = 0; i < count && count > 1; i++) {
		if (stack_stats_largest(members[i].at) < c->facts.largest / 4)
			continue;
		best = *out;
		best.live_bytes = stack_stats_live_bytes(members[i].at);
		series_of_stack(members[i].at, padding, &s);
		series_judge(&s, &best);
		if (!best.grows)
			continue;
		growing += stack_stats_live_bytes(members[i].at);
		/* Where all of them together grow, a few that came by another way of a padding
		 * allocator's own say less. */
		if (out->grows && padding &&
		    stack_stats_total_bytes(members[i].at) < c->facts.total_bytes / SPEAKS_PART)
			continue;
		/* The clearest, among those that make the large ones. */
		if (!out->grows || (best.last * 2 >= out->last && best.tau >= out->tau))
			*out = best;
	}
	if (growing > out->live_bytes)
		out->live_bytes = growing;
	if (out->grows && grew_within_one(c, members, count))
		out->grows = false;
	out->grown_bytes = out->grows ? grown_bytes(c, out->first) : 0;
}

/*
 * Its growth has ended: nothing came for longer than a third of the time in which it grew, and than
 * twice its longest pause so far (a table that doubles pauses for as long as it has been growing).
 */
static bool is_over(const struct callsites *all, const struct callsite *p, const struct timeline *t)
{
	uint64_t longest = 0, pause, grew = timeline_active(t, p->facts.first_ns, p->facts.last_ns);
	uint64_t since = timeline_active(t, p->facts.last_ns, all->moment_ns);

	if (since <= grew / 3 || (uint32_t)(p - all->list) == all->failed)
		return false;
	for (uint32_t i = 1; i < p->facts.step_count; i++) {
		pause =
		    timeline_active(t, p->facts.steps[i - 1].last_ns, p->facts.steps[i].time_ns);
		if (pause > longest)
			longest = pause;
	}
	return since > 2 * longest + 2 * timeline_period_ns(t);
}

/* Blocks that grow beside others of the line that hold nearly all: it does not grow. Where all of
 * them come and go, an interpreter's arenas hold what those list, and are of one size whatever lies
 * in them. */
#define BESIDE_PART 8u

static bool grows_beside(const struct callsites *all, const struct callsite *c)
{
	uint64_t heap = c->facts.live_bytes -
			(callsite_is_working_set(c, all->moment_ns) ? c->facts.map_bytes : 0);

	return !(c->size.geometric && c->survivors.stays) &&
	       c->size.live_bytes <= heap / BESIDE_PART && c->size.last <= heap / BESIDE_PART;
}

void sizes_settle(const struct callsites *all, const struct callsite *c,
    const struct timeline *timeline, struct callsite_sizes *out)
{
	if (!out->grows)
		return;
	if (is_over(all, c, timeline) || grows_beside(all, c))
		out->grows = false;
	if (!out->grows || callsite_indexes_itself(c))
		out->grown_bytes = 0;
}
