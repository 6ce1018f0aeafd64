/* thread_stacks.c - see thread_stacks.h. */
#include "verdict/forecast/thread_stacks.h"

#include <math.h>
#include <string.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, LIVE_MIN, 16u, "pools of threads have as many as there are processors, or few");
TUNED(double, SPAN_MIN, 4.0, "of fewer threads a heap of malloc's is mistaken for their stacks");

#define STACK_LEAST (16u << 10) /* PTHREAD_STACK_MIN */

/* True if the stack goes through the C library's start of a thread, by whatever of its names. */
static bool starts_thread(const struct feed *feed, uint32_t stack)
{
	static const char name[] = "pthread_create";
	const struct symbol *symbols;
	size_t count = feed->symbols(feed->self, stack, &symbols);

	while (count-- > 0) {
		const char *function = symbols[count].function;

		while (function && *function == '_')
			function++;
		if (function && strncmp(function, name, sizeof(name) - 1) == 0)
			return true;
	}
	return false;
}

static double beside(const struct address_reading *r)
{
	return (double)num_less(r->bytes, r->live_bytes);
}

/* Return how many of these blocks were born until then, and live. */
static double live_until(const struct stack_stats *s, uint64_t time_ns)
{
	double sum = 0;

	for (uint32_t i = 0, used = stack_stats_used(s); i < used; i++) {
		struct cohort own;
		const struct cohort *c = stack_stats_cohort(s, i, &own);
		double alive = (double)(c->count - c->freed_count);

		if (c->last_ns <= time_ns)
			sum += alive;
		else if (c->time_ns < time_ns)
			sum += alive * (double)(time_ns - c->time_ns) /
			       (double)(c->last_ns - c->time_ns);
	}
	return sum;
}

/* Return what the address space beside the blocks grew by between two readings, for each table that
 * came there and lives; infinite: too few came to tell. */
static double each_between(const struct stack_stats *tables, const struct address_reading *from,
    const struct address_reading *to)
{
	double came = live_until(tables, to->time_ns) - live_until(tables, from->time_ns);

	return came >= SPAN_MIN ? (beside(to) - beside(from)) / came : INFINITY;
}

/* A heap of malloc's for a thread comes once and is large: of all the time and of its newer half
 * the smaller one counts. */
static double each_of(const struct model *m, const struct stack_stats *tables)
{
	const struct address_space *a = &m->measured.address;
	uint32_t first = 0, last = a->count - 1;
	double each;

	if (a->count < 2)
		return 0;
	while (first < last && live_until(tables, a->at[first + 1].time_ns) <= 0)
		first++;
	each = fmin(each_between(tables, &a->at[first], &a->at[last]),
	    each_between(tables, &a->at[first + (last - first) / 2], &a->at[last]));
	return each >= STACK_LEAST && !isinf(each) ? each : 0;
}

struct thread_stacks thread_stacks_read(const struct model *m, const struct callsites *all)
{
	struct thread_stacks found = {.callsite = CALLSITE_NONE};
	uint64_t most = LIVE_MIN - 1;

	for (size_t i = 0; i < m->stacks.count; i++) {
		const struct stack_stats *s = stack_table_number(&m->stacks, i);
		double each;

		if (s->kind != STACK_STATS_HEAP || stack_stats_live_count(s) <= most ||
		    !starts_thread(&m->feed, s->stack))
			continue;
		each = each_of(m, s);
		if (each <= 0)
			continue;
		most = stack_stats_live_count(s);
		found = (struct thread_stacks){
		    s, callsites_of_stack(all, STACK_STATS_HEAP, s->stack), each};
	}
	return found;
}

double thread_stacks_until(const struct thread_stacks *s, uint64_t time_ns)
{
	return s->tables ? s->each * live_until(s->tables, time_ns) : 0;
}
