/* growth.c - growth by place, summed. */
#include "verdict/forecast/growth.h"

#include <math.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(double, NOTHING_PART, 1.0 / 64,
    "of what lives: growth that has added less is a log, or a table of names");

bool growth_is_of(const struct callsite *c)
{
	/* No queue whose blocks wait ever longer: a ring does the same on a machine that slows
	 * down, and all that is in it is young. */
	return (c->survivors.stays || c->size.grows) && c->facts.live_bytes &&
	       !callsite_is_import(c);
}

/* Return the size of its blocks at that time, by the steps before and after. */
static double size_at(const struct callsite_sizes *s, uint64_t time_ns)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct size_at *to = &s->at[i], *from = i ? to - 1 : to;

		if (to->time_ns < time_ns)
			continue;
		if (to->time_ns == time_ns || !i)
			return to->time_ns == time_ns ? to->size : 0;
		return from->size + (to->size - from->size) * (double)(time_ns - from->time_ns) /
					(double)(to->time_ns - from->time_ns);
	}
	return s->count ? s->at[s->count - 1].size : 0;
}

double growth_kept(const struct callsite *c, uint64_t time_ns)
{
	const struct callsite_sizes *s = &c->size;

	if (c->survivors.stays || !s->grows)
		return survivors_bytes_until(c, time_ns);
	/* A block that replaces a smaller one was born late, and did not grow by all of its size.
	 */
	return (double)c->facts.live_bytes * size_at(s, time_ns) /
	       fmax(s->at[s->count - 1].size, 1);
}

bool growth_points(const struct model *m, const struct callsites *all,
    const struct thread_stacks *stacks, uint64_t now_ns,
    struct forecast_point points[FORECAST_POINTS])
{
	/* A pool's threads do not end, but no more of them come. */
	bool threads =
	    stacks->callsite != CALLSITE_NONE && growth_is_of(&all->list[stacks->callsite]);
	uint64_t first = UINT64_MAX;
	double kept = threads ? thread_stacks_until(stacks, now_ns) : 0;

	for (uint32_t i = 0; i < all->count; i++)
		if (growth_is_of(&all->list[i])) {
			first = num_least(first, all->list[i].facts.first_ns);
			kept += (double)all->list[i].facts.live_bytes;
		}
	/* What took the place of blocks from before an attach is no growth. */
	kept -= (double)base_freed(m, now_ns);
	if (first >= now_ns || kept < NOTHING_PART * (double)all->live_bytes)
		return false;
	for (size_t p = 0; p < FORECAST_POINTS; p++) {
		uint64_t at = first + (uint64_t)((double)(now_ns - first) * (double)p /
						 (FORECAST_POINTS - 1));

		points[p] = (struct forecast_point){
		    (double)at / 1e9, (double)timeline_acquired(&m->timeline, 0, at), 0};
		for (uint32_t i = 0; i < all->count; i++)
			if (growth_is_of(&all->list[i]))
				points[p].kept += growth_kept(&all->list[i], at);
		if (threads)
			points[p].kept += thread_stacks_until(stacks, at);
		points[p].kept = fmax(0, points[p].kept - (double)base_freed(m, at));
	}
	return true;
}

void growth_forecast(const struct model *m, const struct callsites *all, uint64_t now_ns,
    const struct room *room, struct forecast *out)
{
	struct thread_stacks stacks = {.callsite = CALLSITE_NONE};
	struct forecast_period periods[TIMELINE_PERIODS];
	struct forecast_point points[FORECAST_POINTS];
	const struct timeline *t = &m->timeline;
	size_t count = 0;

	if (room->limit == LIMIT_AS || room->limit == LIMIT_DATA)
		stacks = thread_stacks_read(m, all);
	if (growth_points(m, all, &stacks, now_ns, points)) {
		forecast_of_points(points, (double)m->run.first_ns / 1e9, room->left, out);
		return;
	}
	/* The current period is not over. */
	for (uint32_t i = 0; i + 1 < t->used; i++) {
		uint64_t start = (uint64_t)i << t->shift, freed;

		if (start + timeline_period_ns(t) <= m->run.first_ns)
			continue;
		freed = base_freed(m, start + timeline_period_ns(t));
		periods[count++] = (struct forecast_period){start + timeline_period_ns(t) / 2,
		    num_less(t->periods[i].least, freed), num_less(t->periods[i].most, freed)};
	}
	forecast_make(periods, count, room->left, out);
}

struct device_growth growth_of_device(
    const struct spaces *spaces, const struct space *cuda, uint64_t left)
{
	struct device_growth of = {cuda->model, left};
	const struct space *torch = spaces_of(spaces, SPACE_TORCH, cuda->device);

	if (torch && torch->model->blocks.bytes) {
		of.model = torch->model;
		of.room += num_less(cuda->model->blocks.bytes + cuda->model->maps.bytes,
		    torch->model->blocks.bytes);
	}
	return of;
}
