#include "model/heap/timeline.h"

#include <string.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(unsigned, STEADY_TIMES, 2u, "a steady state lasts twice as long as the rise after it");
TUNED(unsigned, STEADY_PART, 10u,
    "requests of a steady server move its memory by up to a tenth of the rise");

#define FIRST_SHIFT 17 /* 131 µs */

void timeline_init(struct timeline *t)
{
	memset(t, 0, sizeof(*t));
	t->shift = FIRST_SHIFT;
	t->used = 1;
}

static void halve(struct timeline *t)
{
	uint32_t to = 0;

	for (uint32_t from = 0; from < t->used; from += 2, to++) {
		struct period p = t->periods[from];

		if (from + 1 < t->used) {
			const struct period *q = &t->periods[from + 1];
			p.least = num_least(p.least, q->least);
			p.most = num_most(p.most, q->most);
			p.rss = num_most(p.rss, q->rss);
			p.last = q->last;
			p.last_ns = q->last_ns;
			p.acquired += q->acquired;
			p.released += q->released;
			p.events += q->events;
			for (int k = 0; k < CAME_KINDS; k++)
				p.came[k] += q->came[k];
		}
		t->periods[to] = p;
	}
	t->used = to;
	t->shift++;
}

/* Inline: each event that changes a byte comes here. */
static inline struct period *period_at(struct timeline *t, uint64_t time_ns, uint64_t live)
{
	/* 2^62 ns are a century: a later time is damage, and stays in the last period. */
	if (time_ns > 1ull << 62)
		time_ns = 1ull << 62;
	while (time_ns >> t->shift >= TIMELINE_PERIODS)
		halve(t);
	while (t->used <= time_ns >> t->shift) {
		struct period *p = &t->periods[t->used++];
		memset(p, 0, sizeof(*p));
		p->least = p->most = p->last = live;
		p->last_ns = (uint64_t)(t->used - 1) << t->shift;
	}
	return &t->periods[t->used - 1];
}

struct period *timeline_at(struct timeline *t, uint64_t time_ns, uint64_t live)
{
	return period_at(t, time_ns, live);
}

static uint64_t part_of(uint64_t whole, double share)
{
	double part = (double)whole * share;

	return part >= 0x1p63 ? INT64_MAX : (uint64_t)part;
}

void timeline_replaced(struct timeline *t, const struct timeline_replaced *r)
{
	double length = (double)(r->until_ns - r->from_ns);
	uint64_t least = r->live_from < r->live_until ? r->live_from : r->live_until;

	for (uint32_t i = 0; i < t->used && r->until_ns > r->from_ns; i++) {
		struct period *p = &t->periods[i];
		uint64_t start = (uint64_t)i << t->shift, end = start + timeline_period_ns(t);
		uint64_t from = start > r->from_ns ? start : r->from_ns;
		uint64_t until = end < r->until_ns ? end : r->until_ns, live;
		double share, at;

		if (from >= until)
			continue;
		share = (double)(until - from) / length;
		p->acquired += part_of(r->acquired, share);
		p->released += part_of(r->released, share);
		p->events += part_of(r->events, share) + 1;
		p->most = num_most(p->most, r->most);
		at = (double)(until - r->from_ns) / length;
		live = part_of(r->live_from, 1 - at) + part_of(r->live_until, at);
		/* Events after the stretch, in its last period, come later. */
		if (until == end && live > p->last) {
			p->last = live;
			p->last_ns = end - 1;
		}
		p->most = num_most(p->most, p->last);
		if (least > p->least)
			p->least = least < p->last ? least : p->last;
	}
}

/* Return the part of a period's change, from the end of the previous one, until that time. */
static double part_until(const struct timeline *t, uint64_t index, uint64_t time_ns)
{
	uint64_t since = index ? t->periods[index - 1].last_ns : 0,
		 last = t->periods[index].last_ns;

	if (time_ns >= last || last <= since)
		return 1;
	return time_ns <= since ? 0 : (double)(time_ns - since) / (double)(last - since);
}

double timeline_between(
    const struct timeline *t, uint64_t time_ns, uint64_t *from_ns, uint64_t *until_ns)
{
	uint64_t index = time_ns >> t->shift;

	*from_ns = *until_ns = time_ns;
	if (index >= t->used || part_until(t, index, time_ns) >= 1)
		return 1;
	*from_ns = index ? t->periods[index - 1].last_ns : 0;
	*until_ns = t->periods[index].last_ns;
	return part_until(t, index, time_ns);
}

uint64_t timeline_live(const struct timeline *t, uint64_t time_ns)
{
	uint64_t index = time_ns >> t->shift;
	const struct period *p;
	double from, part;

	if (index >= t->used)
		return t->periods[t->used - 1].last;
	p = &t->periods[index];
	part = part_until(t, index, time_ns);
	if (part >= 1)
		return p->last;
	/* Doubles: differences may be negative, and products large. */
	from = index ? (double)t->periods[index - 1].last : 0;
	return (uint64_t)(from + ((double)p->last - from) * part);
}

uint64_t timeline_came(const struct timeline *t, uint64_t time_ns, enum came what)
{
	uint64_t index = time_ns >> t->shift;
	double sum = 0;

	for (uint64_t i = 0; i < t->used && i <= index; i++)
		sum +=
		    (double)t->periods[i].came[what] * (i < index ? 1 : part_until(t, i, time_ns));
	return sum > 0 ? (uint64_t)sum : 0;
}

uint64_t timeline_active(const struct timeline *t, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t active = 0;

	for (uint32_t i = 0; i < t->used && from_ns < until_ns; i++) {
		uint64_t start = (uint64_t)i << t->shift, end = start + timeline_period_ns(t);

		if (!t->periods[i].events || end <= from_ns || start >= until_ns)
			continue;
		active += (end < until_ns ? end : until_ns) - (start > from_ns ? start : from_ns);
	}
	return active;
}

uint64_t timeline_acquired(const struct timeline *t, uint64_t from_ns, uint64_t until_ns)
{
	double sum = 0;

	for (uint32_t i = 0; i < t->used; i++) {
		uint64_t start = (uint64_t)i << t->shift, length = timeline_period_ns(t);
		uint64_t from = start > from_ns ? start : from_ns;
		uint64_t until = start + length < until_ns ? start + length : until_ns;

		if (from < until)
			sum += (double)t->periods[i].acquired * (double)(until - from) /
			       (double)length;
	}
	return (uint64_t)sum;
}

void timeline_rss(struct timeline *t, uint64_t time_ns, uint64_t live, uint64_t rss)
{
	struct period *p = timeline_at(t, time_ns, live);

	p->rss = num_most(p->rss, rss);
}

void timeline_map(
    struct timeline *t, uint64_t time_ns, uint64_t live, enum came what, int64_t change)
{
	timeline_at(t, time_ns, live)->came[what] += change;
}

static struct period *change(
    struct timeline *t, uint64_t time_ns, uint64_t live_before, uint64_t live)
{
	struct period *p = period_at(t, time_ns, live_before);

	p->events++;
	p->last = live;
	p->last_ns = time_ns;
	return p;
}

void timeline_acquire(
    struct timeline *t, uint64_t time_ns, uint64_t live_before, uint64_t live, uint64_t size)
{
	struct period *p = change(t, time_ns, live_before, live);

	p->acquired += size;
	if (live > p->most)
		p->most = live;
}

void timeline_release(
    struct timeline *t, uint64_t time_ns, uint64_t live_before, uint64_t live, uint64_t size)
{
	struct period *p = change(t, time_ns, live_before, live);

	p->released += size;
	if (live < p->least)
		p->least = live;
}

/* Times are exact to one period. */
bool late_rise_find(
    const struct timeline *t, uint64_t first_ns, uint64_t moment_ns, struct late_rise *out)
{
	uint64_t index = moment_ns >> t->shift, top = 0, base, acquired = 0;
	uint32_t last = index < t->used ? (uint32_t)index : t->used - 1, from, steady;

	for (uint32_t i = 0; i <= last; i++)
		top = num_most(top, t->periods[i].most);
	/* Go back from the end to the last period that stayed below the middle of the rise; then
	 * forward to where memory stopped falling. */
	for (from = last; from > 0 && t->periods[from].least > top / 2; from--)
		;
	while (from > 0 && t->periods[from - 1].most < t->periods[from].most)
		from--;
	base = t->periods[from].least;
	if (top <= base || top - base < top / 2)
		return false;
	for (steady = from; steady > first_ns >> t->shift; steady--) {
		const struct period *p = &t->periods[steady - 1];
		uint64_t margin = (top - base) / STEADY_PART;
		if (p->most > base + margin || p->least + margin < base)
			break;
	}
	if ((uint64_t)(from - steady) < (uint64_t)(last - from + 1) * STEADY_TIMES)
		return false;
	out->start_ns = (uint64_t)from << t->shift;
	out->steady_ns = (uint64_t)(from - steady) << t->shift;
	out->peak_trend_bytes = top - base;
	for (uint32_t i = steady; i < from; i++)
		acquired += t->periods[i].acquired;
	out->worked = acquired > base;
	return true;
}
