/* backlog.c - blocks that wait in a queue, and blocks that build up until all are released. */
#include "model/callsite/callsite_parts.h"

#include <math.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(double, IN_ORDER, 0.55,
    "of ten consumers eleven releases in twenty are in order, without an order ten are");
TUNED(unsigned, BACKLOG_MIN, 16u, "of fewer blocks the order of the releases is chance");
TUNED(double, WAITS_LONGER, 1.5,
    "the last wait is the mean of a steady queue, and twice it of one that grows evenly");
TUNED(unsigned, WAITED_PART, 16u,
    "workers in step release at once only while others wait; a dropped batch leaves none");
TUNED(unsigned, TIMES_MIN, 4u, "three build-ups that were released may be chance");
TUNED(double, RECORDS_DEVIATIONS, 3.0,
    "of n numbers in any order ln n + 0.58 are records; three deviations above is no chance");
#define RECORDS_EVEN 1.645 /* pi^2 / 6: by so much their variance is below their mean */
TUNED(unsigned, GROWN_TIMES, 2u,
    "the first build-up is a warm-up: twice its size is the least that is growth");

/* The share of releases in order. Several consumers finish in another order than they take: two
 * keep three in four in order, ten keep eleven in twenty, and no order keeps half. Still, all
 * blocks older than the last released one are gone. Releases at the same time may come from
 * consumers in step, if they are few beside the waiting blocks; otherwise a build-up was
 * dropped. */

/* Return how many of the live blocks existed at the last release, as far as cohorts show. */
static double waited_then(const struct stack_stats *s, const struct stack_stats_order *last)
{
	double then = 0, at = 0;
	struct cohort own;

	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		const struct cohort *c = stack_stats_cohort(s, i, &own);
		double left = (double)(c->count - c->freed_count), part = 1;

		/* The released blocks of a cohort came first. */
		if (c->serial <= last->serial)
			at = (double)c->time_ns + (double)(c->last_ns - c->time_ns) *
						      (double)c->freed_count / (double)c->count;
		if ((double)c->last_ns > at + (double)last->life_ns)
			part = (at + (double)last->life_ns - (double)c->time_ns) /
			       (double)(c->last_ns - c->time_ns + 1);
		then += fmin(left, fmax(0, part * (double)c->count - (double)c->freed_count));
	}
	return then;
}

void backlog_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    struct backlog *out)
{
	const struct stack_stats *s = callsite_heaviest(members, count);
	double in_step = 1;
	struct stack_stats_course course;
	uint64_t older = 0, left = 0, ended;
	struct cohort own;

	ended = s ? stack_stats_ended_count(s) : 0;
	if (!s || stack_stats_live_bytes(s) < c->facts.live_bytes / 2 ||
	    stack_stats_live_count(s) < BACKLOG_MIN || ended < BACKLOG_MIN ||
	    stack_stats_live_bytes(s) < stack_stats_peak_bytes(s) - stack_stats_peak_bytes(s) / 8)
		return;
	course = stack_stats_course(s);
	if (waited_then(s, &course.order) > (double)stack_stats_live_count(s) / WAITED_PART)
		in_step = (double)(stack_stats_live_count(s) / BACKLOG_MIN);
	if ((double)course.order.ascending < IN_ORDER * (double)ended ||
	    (double)course.order.turns * fmax(1 / IN_ORDER, in_step) < (double)ended ||
	    (double)course.order.life_ns * (double)stack_stats_freed_count(s) <
		WAITS_LONGER * (double)stack_stats_life_ns(s))
		return;
	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		const struct cohort *from = stack_stats_cohort(s, i, &own);

		older += from->serial <= course.order.serial ? left : 0;
		left = from->count - from->freed_count;
	}
	/* It was drained, and nothing of what came since was served: one pile, and no queue. */
	if (!course.no_buildup && ended <= course.buildup.before)
		return;
	if (older > ended / BACKLOG_MIN) /* hardly any older block is left */
		return;
	*out = (struct backlog){.grows = true,
	    .count = stack_stats_live_count(s),
	    .bytes = stack_stats_live_bytes(s),
	    .served = ended,
	    .wait_ns = course.order.life_ns};
}

/* --- build-ups --- */

/* The heaviest stack stands for the call site. */
static void read_growth(const struct callsite *c, const struct callsite_member *members,
    size_t count, struct buildup *out)
{
	const struct stack_stats_buildups *before;
	const struct stack_stats *s = callsite_heaviest(members, count);
	double by_chance;
	uint64_t now;

	if (!s || out->times < TIMES_MIN)
		return;
	before = &stack_stats_rare(s)->buildups;
	now = stack_stats_course(s).no_buildup ? 0 : stack_stats_live_bytes(s);
	if (before->times < TIMES_MIN || now <= before->largest ||
	    now < GROWN_TIMES * before->first || now > SIZES_UNUSUAL * before->largest)
		return;
	by_chance = log(before->times + 1.0) + 0.58;
	if (before->records + 1.0 <
	    by_chance + RECORDS_DEVIATIONS * sqrt(fmax(0, by_chance - RECORDS_EVEN)))
		return;
	out->grows = true;
	out->now = c->facts.live_bytes;
	out->first = (uint64_t)((double)before->first * (double)c->facts.live_bytes / (double)now);
	out->records = before->records + 1;
}

void buildup_read(const struct callsite *c, const struct callsite_member *members, size_t count,
    struct buildup *out)
{
	uint64_t ended_ns = 0, largest = 0;

	for (size_t i = 0; i < count; i++) {
		const struct stack_stats_buildups *before =
		    &stack_stats_rare(members[i].at)->buildups;

		out->times += before->times;
		largest += before->largest;
		ended_ns = num_most(ended_ns, before->ended_ns);
	}
	for (size_t i = 0; i < count && out->times >= TIMES_MIN; i++) {
		const struct stack_stats *s = members[i].at;
		const struct stack_stats_course course = stack_stats_course(s);

		/* One block is larger than all earlier build-ups: the line does other work now. */
		if (course.no_buildup || course.buildup.since_ns < ended_ns ||
		    stack_stats_live_bytes(s) > largest * stack_stats_live_count(s))
			continue;
		if (!out->bytes || course.buildup.since_ns < out->since_ns)
			out->since_ns = course.buildup.since_ns;
		out->bytes += stack_stats_live_bytes(s);
	}
	out->largest = largest;
	read_growth(c, members, count, out);
	/* The next one of the same kind is nothing unusual. */
	if (out->bytes < SIZES_UNUSUAL * largest)
		out->bytes = 0;
}
