/*
 * outlook.c - see outlook.h.
 *
 * Daemons that kill wait for less than a tenth of the memory to be left, unless they are told
 * otherwise: earlyoom (-m 10), systemd-oomd (SwapUsedLimit=90%), the kubelet
 * (memory.available<100Mi). Who is killed while a fifth or more is left, of the machine's memory
 * and of the cgroup's, is not killed for want of memory.
 *
 * The forecast carries the slope of what lives on: that of the second half of the run, and that of
 * its last quarter. Where both rise steadily the limit is reached between the two moments that they
 * give.
 */
#include "verdict/failure/outlook.h"

#include "model/callsite/trend.h"
#include "util/num.h"
#include "verdict/failure/failure.h"

/* Of the memory. */
#define PLENTY_PART 5u
/* Kendall's tau of values that rise, but for some that chance exchanges. */
#define STEADY_TAU 0.7
/* Fewer are no series. */
#define PERIODS_MIN 8u

static void read_left(const struct room *rooms, size_t count, struct outlook *out)
{
	uint64_t least = UINT64_MAX;

	out->plenty = true;
	for (size_t i = 0; i < count; i++) {
		const struct room *r = &rooms[i];

		if (r->limit != LIMIT_SYSTEM && r->limit != LIMIT_CGROUP)
			continue;
		out->known |= r->limit == LIMIT_SYSTEM;
		out->plenty &= r->left >= r->bytes / PLENTY_PART;
		if (r->left >= least)
			continue;
		least = out->left_bytes = r->left;
		out->memory = r->limit;
	}
	if (!out->known)
		*out = (struct outlook){.known = false};
}

/* Bytes a second that what lives at least in each period rises by, from there to the end; 0: it
 * does not rise steadily. */
static double slope_from(const struct timeline *t, uint32_t first)
{
	double x[TIMELINE_PERIODS], y[TIMELINE_PERIODS], slope;
	size_t n = 0;

	/* The last period is not over: what lives least in it may be what its start saw. */
	for (uint32_t i = first; i + 1 < t->used; i++, n++) {
		x[n] = (double)i * (double)timeline_period_ns(t) / 1e9;
		y[n] = (double)t->periods[i].least;
	}
	if (n < PERIODS_MIN || trend_tau(y, n) < STEADY_TAU)
		return 0;
	trend_fit(x, y, n, &slope);
	return slope > 0 ? slope : 0;
}

static uint64_t full_after_ns(uint64_t left, double slope)
{
	double ns = (double)left / slope * 1e9;

	return ns < (double)INT64_MAX ? (uint64_t)ns : INT64_MAX;
}

static void read_trend(
    const struct model *m, const struct room *rooms, size_t count, struct outlook *out)
{
	const struct timeline *t = &m->timeline;
	double half = slope_from(t, t->used / 2), quarter = slope_from(t, t->used / 4 * 3);
	uint64_t least = UINT64_MAX, ends[2];

	out->grows = half > 0 && quarter > 0;
	if (!out->grows)
		return;
	for (size_t i = 0; i < count; i++) {
		if (rooms[i].left >= least)
			continue;
		least = rooms[i].left;
		out->first = rooms[i].limit;
		out->first_bytes = rooms[i].bytes;
	}
	ends[0] = full_after_ns(least, half);
	ends[1] = full_after_ns(least, quarter);
	out->full_soonest_ns = num_least(ends[0], ends[1]);
	out->full_latest_ns = ends[0] + ends[1] - out->full_soonest_ns;
}

void outlook_read(const struct model *m, const struct supervised *s, struct outlook *out)
{
	struct room rooms[FAILURE_ROOMS];
	size_t count = failure_rooms(m, s, rooms);

	*out = (struct outlook){.known = false};
	read_left(rooms, count, out);
	if (out->known)
		read_trend(m, rooms, count, out);
}
