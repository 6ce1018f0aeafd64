/* buildup.c - see buildup.h. */
#include "model/callsite/buildup.h"

#include <math.h>

#include "model/callsite/callsite.h"

/* A stack that made less of its call site's bytes does not speak for it. */
#define SPEAKS_PART 8u

/* Piles that were given back are a habit, by whatever way they were made; and of the present one so
 * much lives. */
#define TIMES_MIN 4u
#define ALIVE_PART 4u
#define UNUSUAL_TIMES 4u

/* Of n numbers in any order ln n + 0.58 are larger than all before; so many times as many are no
 * chance. */
#define RECORDS_TIMES 2.5
#define GROWN_TIMES 2u

/* Its heaviest stack speaks for the place. */
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

		/* One block of it is more than all of those were: it is something else that the
		 * same line makes. */
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
	/* The next of their kind is none that is out of the ordinary. */
	if (out->bytes < UNUSUAL_TIMES * largest)
		out->bytes = 0;
}
