#include "model/callsite/buildup.h"

#include <math.h>

#include "model/callsite/callsite.h"
#include "util/tuned.h"

TUNED(unsigned, SPEAKS_PART, 8u, "a stack that made less of its call site does not speak for it");
TUNED(unsigned, TIMES_MIN, 4u, "three build-ups that were released may be chance");
TUNED(
    unsigned, ALIVE_PART, 4u, "of a build-up that stays at most a quarter is released on the way");
TUNED(unsigned, UNUSUAL_TIMES, 4u, "requests of one kind differ by a factor of two or three");
TUNED(double, RECORDS_TIMES, 2.5,
    "of n numbers in any order ln n + 0.58 are records; 2.5 times that is no chance");
TUNED(unsigned, GROWN_TIMES, 2u,
    "the first build-up is a warm-up: twice its size is the least that is growth");

/* The heaviest stack stands for the call site. */
static void read_growth(const struct callsite *c, const struct callsite_member *members,
    size_t count, struct buildup *out)
{
	const struct stack_stats_buildups *before;
	const struct stack_stats *s = callsite_heaviest(members, count);
	uint64_t now;

	if (!s || out->times < TIMES_MIN)
		return;
	before = &stack_stats_rare(s)->buildups;
	now = stack_stats_course(s).no_buildup ? 0 : stack_stats_live_bytes(s);
	if (before->times < TIMES_MIN || now < c->facts.live_bytes / SPEAKS_PART ||
	    now <= before->largest || now < GROWN_TIMES * before->first ||
	    now > UNUSUAL_TIMES * before->largest ||
	    before->records + 1.0 < RECORDS_TIMES * (log(before->times + 1.0) + 0.58))
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
		if (before->ended_ns > ended_ns)
			ended_ns = before->ended_ns;
	}
	for (size_t i = 0; i < count && out->times >= TIMES_MIN; i++) {
		const struct stack_stats *s = members[i].at;
		const struct stack_stats_course course = stack_stats_course(s);
		uint64_t made = stack_stats_total_count(s) - course.buildup.before;

		/* One block is larger than all earlier build-ups: the line does other work now. */
		if (course.no_buildup || course.buildup.since_ns < ended_ns ||
		    stack_stats_live_count(s) < made - made / ALIVE_PART ||
		    stack_stats_live_bytes(s) > largest * stack_stats_live_count(s))
			continue;
		if (!out->bytes || course.buildup.since_ns < out->since_ns)
			out->since_ns = course.buildup.since_ns;
		out->bytes += stack_stats_live_bytes(s);
	}
	out->largest = largest;
	read_growth(c, members, count, out);
	/* The next one of the same kind is nothing unusual. */
	if (out->bytes < UNUSUAL_TIMES * largest)
		out->bytes = 0;
}
