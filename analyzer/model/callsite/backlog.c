/* backlog.c - see backlog.h. */
#include "model/callsite/backlog.h"

#include <math.h>

#include "model/callsite/callsite.h"

/* Of those given back, the share that came after one that was made before it, and one at a time.
 * Several who take from a queue are done with what they took in another order: of two three in
 * four, of ten eleven in twenty, and of what goes in no order half. What is older than the last one
 * given back has all gone nevertheless. What goes at once may be several's who work in step, if it
 * is little beside what waits; else a pile is dropped. */
#define IN_ORDER 0.55
#define BACKLOG_MIN 16u

/* The last one waited longer than all did on average, by so much: with a steady backlog they are
 * equal, with one that grows evenly it is twice as much. */
#define WAITS_LONGER 1.5

/* Of what lives, the blocks that were there when the last one was given back, in order: as far as
 * cohorts tell when they came. */
static double waited_then(const struct stack_stats *s, const struct stack_stats_order *last)
{
	double then = 0, at = 0;
	struct cohort own;

	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		const struct cohort *c = stack_stats_cohort(s, i, &own);
		double left = (double)(c->count - c->freed_count), part = 1;

		/* Those that were given back of it came first. */
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

/* What goes at once is several's who work in step only while others wait meanwhile. */
#define WAITED_PART 16u

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
	if (older > ended / BACKLOG_MIN) /* nothing is left of what came before */
		return;
	*out = (struct backlog){.grows = true,
	    .count = stack_stats_live_count(s),
	    .bytes = stack_stats_live_bytes(s),
	    .served = ended,
	    .wait_ns = course.order.life_ns};
}
