/* sizes.c - do a call site's blocks grow from step to step, from what to what? */
#include "model/callsite/callsite_parts.h"

#include "model/callsite/trend.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(double, RISES_TAU, 0.5, "three in four of the pairs rise");
TUNED(double, RISES_LATE, 0.3, "of 32 values without trend tau deviates by 0.12");
TUNED(double, RISES_FACTOR, 1.5, "a container that is enlarged once has grown by half");
TUNED(double, JUMP_SHARE, 0.85,
    "one step that makes nearly all of the rise is other work and no growth");
TUNED(double, OVER_PART, 64.0,
    "even growth adds 1/4 in the last quarter, a logarithm from 1 to hundreds 1/20");
TUNED(
    unsigned, ENDED_MIN, 8u, "so many objects that ended show how large one of them usually gets");
TUNED(unsigned, SPEAKS_PART, 8u, "a stack that made less of its call site does not speak for it");
TUNED(unsigned, LARGE_PART, 4u, "a stack whose largest block is smaller makes something else");
TUNED(unsigned, BESIDE_PART, 8u, "less than this part of what the line holds decides nothing");

/* The series under judgement. */
struct series {
	struct size_at at[CALLSITE_STEPS];
	uint64_t blocks[CALLSITE_STEPS]; /* number of blocks that each stands for */
	size_t count;
	bool sums; /* some stand for a checkpoint's sum */
};

/* True if nearly all of the rise is one jump that stayed: work of another size, and no growth. */
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

/* Return the median of the larger half: neither the smaller values nor a single outlier matter. */
static double large(const double *sizes, size_t n)
{
	double least = trend_median(sizes, n), large[CALLSITE_STEPS];
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (sizes[i] >= least)
			large[count++] = sizes[i];
	return trend_median(large, count);
}

/* True if the rise is over: the rest comes from chance, or from one more digit of a number. A
 * checkpoint's sums have no quarters. */
static bool has_levelled_off(const struct series *s, const double *sizes, double rise)
{
	size_t n = s->count, quarter = n / 4;

	return quarter >= 2 && !s->sums &&
	       large(sizes + n - quarter, quarter) - large(sizes + n - 2 * quarter, quarter) <
		   rise / OVER_PART;
}

/* Return the number of values in the first eighth of the blocks. Each value stands for as many
 * blocks, but a checkpoint's sums are few and stand for most. */
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
	if (!n) /* only releases were seen */
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

/* Keep the largest of every `width` values: small blocks must not hide a large one once a turn. */
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

/* Return the requested size. If the allocator may add up to `padding` bytes, the smallest of
 * similar blocks is nearest. */
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

/* Sort by the end of each step, where a growing step has its large blocks: one way to the line may
 * have long steps, another short ones among them. */
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

/* Return live bytes beyond as many blocks of the early size. Blocks as large as their step's
 * largest hold nearly all bytes, so their number follows from the bytes. */
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

/* True if the growth is one object that realloc() enlarged again and again while little else
 * happened, and many ended objects like it stayed small: one exceptional piece of work, and no
 * trend. */
static bool grew_within_one(
    const struct callsite *p, const struct callsite_member *members, size_t count)
{
	uint64_t ended = 0, largest = 0;

	for (size_t i = 0; i < count; i++) {
		ended += stack_stats_ended_count(members[i].at);
		largest = num_most(largest, stack_stats_ended_largest(members[i].at));
	}
	for (size_t i = 0; i < count && ended >= ENDED_MIN; i++) {
		const struct stack_stats *s = members[i].at;
		const struct stack_stats_course c = stack_stats_course(s);

		if (c.object.serial && stack_stats_largest(s) == p->facts.largest &&
		    largest <= stack_stats_largest(s) / SIZES_UNUSUAL &&
		    c.object.first <= largest &&
		    c.object.acquired >= (c.object.until - c.object.before) / 2)
			return true;
	}
	return false;
}

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
		if (stack_stats_largest(members[i].at) < c->facts.largest / LARGE_PART)
			continue;
		best = *out;
		best.live_bytes = stack_stats_live_bytes(members[i].at);
		series_of_stack(members[i].at, padding, &s);
		series_judge(&s, &best);
		if (!best.grows)
			continue;
		growing += stack_stats_live_bytes(members[i].at);
		/* When all stacks together grow, one stack behind a padding allocator proves
		 * less. */
		if (out->grows && padding &&
		    stack_stats_total_bytes(members[i].at) < c->facts.total_bytes / SPEAKS_PART)
			continue;
		/* Take the clearest trend among the stacks that make the large blocks. */
		if (!out->grows || (best.last * 2 >= out->last && best.tau >= out->tau))
			*out = best;
	}
	if (count)
		out->run = stack_stats_course(callsite_heaviest(members, count)).run;
	out->live_bytes = num_most(out->live_bytes, growing);
	if (out->grows && grew_within_one(c, members, count))
		out->grows = false;
	out->grown_bytes = out->grows ? grown_bytes(c, out->first) : 0;
}

/* True if the growth is over: nothing came for longer than a third of the time of growth and than
 * twice the longest pause (a table that doubles pauses for as long as it has grown). */
static bool is_over(const struct callsites *all, const struct callsite *p, const struct timeline *t)
{
	uint64_t longest = 0, pause, grew = timeline_active(t, p->facts.first_ns, p->facts.last_ns);
	uint64_t since = timeline_active(t, p->facts.last_ns, all->moment_ns);

	if (since <= grew / 3 || (uint32_t)(p - all->list) == all->failed)
		return false;
	for (uint32_t i = 1; i < p->facts.step_count; i++) {
		pause =
		    timeline_active(t, p->facts.steps[i - 1].last_ns, p->facts.steps[i].time_ns);
		longest = num_most(longest, pause);
	}
	return since > 2 * longest + 2 * timeline_period_ns(t);
}

/* False if blocks beside the growing ones hold nearly all bytes of the line: then the line does not
 * grow. If all of its blocks come and go, arenas hold the counted ones, and their size says
 * nothing. */
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
