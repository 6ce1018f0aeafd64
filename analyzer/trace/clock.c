#include "trace/clock.h"

#include <stdlib.h>

#define RATE_MAX ((uint64_t)1 << 62)
#define SPAN_TRUSTED 10000000u /* ns: closer pairs are less exact than the nominal rate */

typedef unsigned __int128 wide;

int clock_add(struct clock *clock, uint64_t ticks, uint64_t mono_ns)
{
	return vec_push(&clock->pairs, (struct clock_pair){.ticks = ticks, .ns = mono_ns});
}

static int by_ticks(const void *a, const void *b)
{
	const struct clock_pair *x = a, *y = b;

	if (x->ticks != y->ticks)
		return x->ticks < y->ticks ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static uint64_t rate_of(uint64_t ns, uint64_t ticks)
{
	wide rate = ((wide)ns << CLOCK_RATE_SHIFT) / ticks;

	return rate > RATE_MAX ? RATE_MAX : (uint64_t)rate;
}

void clock_finish(struct clock *clock, uint64_t start_mono_ns, uint64_t ticks_hz)
{
	struct clock_pair *p = clock->pairs.items;
	size_t kept = 0;
	uint64_t rate;

	if (!clock->pairs.count)
		return;
	qsort(p, clock->pairs.count, sizeof(*p), by_ticks);
	for (size_t i = 0; i < clock->pairs.count; i++) {
		p[i].ns = p[i].ns > start_mono_ns ? p[i].ns - start_mono_ns : 0;
		if (p[i].ns > INT64_MAX)
			p[i].ns = INT64_MAX;
		if (kept && (p[i].ticks == p[kept - 1].ticks || p[i].ns < p[kept - 1].ns))
			continue;
		p[kept++] = p[i];
	}
	clock->pairs.count = kept;
	for (size_t i = 0; i + 1 < kept; i++)
		p[i].rate = rate_of(p[i + 1].ns - p[i].ns, p[i + 1].ticks - p[i].ticks);
	rate = (uint64_t)1 << CLOCK_RATE_SHIFT;
	if (kept > 1)
		rate = rate_of(p[kept - 1].ns - p[0].ns, p[kept - 1].ticks - p[0].ticks);
	if (ticks_hz && (kept < 2 || p[kept - 1].ns - p[0].ns < SPAN_TRUSTED))
		rate = rate_of(1000000000u, ticks_hz);
	p[kept - 1].rate = rate;
	clock->back_rate = rate;
	clock->at = 0;
	clock->span = 0;
}

/* Return the number of ticks for which the pair gives at most INT64_MAX ns. */
static uint64_t span_of(const struct clock *clock, size_t at)
{
	const struct clock_pair *p = &clock->pairs.items[at];
	wide span;

	if (at + 1 < clock->pairs.count)
		return p[1].ticks - p[0].ticks;
	if (!p->rate)
		return UINT64_MAX;
	span = ((wide)(INT64_MAX - p->ns) << CLOCK_RATE_SHIFT) / p->rate;
	return span > UINT64_MAX ? UINT64_MAX : (uint64_t)span;
}

uint64_t clock_search(struct clock *clock, uint64_t ticks)
{
	const struct clock_pair *p = clock->pairs.items;
	size_t at = clock->at;
	wide ns;

	if (!clock->pairs.count)
		return 0;
	if (ticks < p[at].ticks)
		at = 0;
	while (at + 1 < clock->pairs.count && p[at + 1].ticks <= ticks)
		at++;
	p += at;
	if (at != clock->at || !clock->span) {
		clock->at = at;
		clock->from = p->ticks;
		clock->from_ns = p->ns;
		clock->rate = p->rate;
		clock->span = span_of(clock, at);
	}
	if (ticks < p->ticks) { /* before the first pair */
		ns = (wide)(p->ticks - ticks) * clock->back_rate >> CLOCK_RATE_SHIFT;
		return ns > p->ns ? 0 : p->ns - (uint64_t)ns;
	}
	ns = ((wide)(ticks - p->ticks) * p->rate >> CLOCK_RATE_SHIFT) + p->ns;
	return ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

uint64_t clock_ticks_of(const struct clock *clock, uint64_t ns)
{
	uint64_t rate;
	wide ticks;

	if (!clock->pairs.count)
		return 1;
	rate = clock->pairs.items[clock->pairs.count - 1].rate;
	if (!rate)
		return 1;
	ticks = ((wide)ns << CLOCK_RATE_SHIFT) / rate;
	return ticks < 1 ? 1 : ticks > INT64_MAX ? INT64_MAX : (uint64_t)ticks;
}

void clock_fini(struct clock *clock)
{
	vec_free(&clock->pairs);
	*clock = (struct clock){0};
}
