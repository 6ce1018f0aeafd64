/* work.c - how much work both sides did, without which their bytes cannot be compared. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "diff/compare.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, BUSY_LEAST, 8u, "fewer calls say little of how much work was done");
TUNED(uint64_t, BUSY_PART, 8u,
    "a line of the work makes a quarter of its calls in the last quarter; one of the start, none");

/* Is the line called again and again, until the end? */
static bool is_busy(const struct series *s)
{
	uint64_t late = num_less(s->now.total_count, s->early_count);

	return s->then.total_count >= BUSY_LEAST && late >= s->now.total_count / BUSY_PART;
}

/* How much work was done: B's in terms of A's, and how many calls that is on each side. */
struct work {
	double times, calls_a, calls_b;
};

static struct work work_between(double calls_a, double calls_b)
{
	return (struct work){calls_a > 0 && calls_b > 0 ? calls_b / calls_a : 0, calls_a, calls_b};
}

static int by_times(const void *x, const void *y)
{
	const struct work *a = x, *b = y;

	return (a->times > b->times) - (a->times < b->times);
}

/* Acquisitions include those of the start, which are the same for little and for much work. So the
 * lines that are called again and again say how much work was done: half of them were called more
 * often than that. Leaves *out where there are too few of them. `whole`: in the whole run, not
 * until the moment. */
static int work_of_lines(const struct comparison *c, bool whole, struct work *out)
{
	const struct pairs *pairs = &c->sides->pairs;
	struct work *list = malloc((pairs->list.count + 1) * sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < pairs->list.count; i++) {
		const struct series *a = compare_series(c->a, pairs->list.items[i].a);
		const struct series *b = compare_series(c->b, pairs->list.items[i].b);

		if (is_busy(a) && is_busy(b))
			list[n++] = whole ? work_between((double)a->now.total_count,
						(double)b->now.total_count)
					  : work_between((double)a->then.total_count,
						(double)b->then.total_count);
	}
	if (n > 1)
		qsort(list, n, sizeof(*list), by_times);
	/* Of two lines one may have changed: the other says less. */
	if (n == 2)
		*out = fabs(log(list[0].times)) < fabs(log(list[1].times)) ? list[0] : list[1];
	else if (n > 2)
		*out = list[n / 2];
	free(list);
	return 0;
}

int compare_work(struct comparison *c)
{
	const struct series *a = c->a ? &c->a->sum : &compare_no_series;
	const struct series *b = c->b ? &c->b->sum : &compare_no_series;
	struct diff_space *out = c->out;
	struct work until, runs;
	size_t lines = 0;

	for (size_t i = 0; i < c->sides->pairs.list.count; i++) {
		const struct pair *pair = &c->sides->pairs.list.items[i];

		lines += compare_series(c->a, pair->a)->now.total_count ||
			 compare_series(c->b, pair->b)->now.total_count;
	}
	out->work_by_requests = out->a.requests && out->b.requests;
	if (out->work_by_requests) {
		until = work_between((double)out->a.requests, (double)out->b.requests);
		runs = work_between(
		    (double)c->sides->a.requests.begun, (double)c->sides->b.requests.begun);
	} else {
		until = work_between((double)out->a.acquired, (double)out->b.acquired);
		runs = work_between(
		    c->a ? (double)c->a->acquired : 0, c->b ? (double)c->b->acquired : 0);
		if (work_of_lines(c, false, &until) || work_of_lines(c, true, &runs))
			return -ENOMEM;
	}
	out->work = runs.times;
	c->judge = (struct judge){.by = c->request->by,
	    .one_run = c->result->one_run,
	    .work = until.times,
	    .runs = runs.times,
	    .work_error = until.times > 0 ? 2 * fabs(until.times - 1) *
						sqrt(1 / until.calls_a + 1 / until.calls_b)
					  : 0,
	    .whole = num_most(judge_bytes(a, c->request->by), judge_bytes(b, c->request->by)),
	    .errors = judge_errors(lines)};
	return 0;
}
