/*
 * outlook.c - see outlook.h.
 *
 * Plenty is left if a fifth of both the machine's memory and the cgroup's is: then no killer
 * strikes for lack of memory.
 *
 * The forecast extends two slopes of the live bytes: over the run's second half, and over its last
 * quarter. If both rise steadily, the limit is reached between their two moments.
 */
#include "verdict/failure/outlook.h"

#include "model/callsite/trend.h"
#include "util/num.h"
#include "util/tuned.h"
#include "verdict/failure/failure.h"

TUNED(uint64_t, PLENTY_PART, 5,
    "earlyoom (-m 10), systemd-oomd (SwapUsedLimit=90%) and the kubelet (memory.available<100Mi) "
    "wait until less than a tenth is left; twice that allows for old samples");
TUNED(double, STEADY_TAU, 0.7,
    "Kendall's tau of a rise in which chance exchanges three pairs in twenty");
TUNED(size_t, PERIODS_MIN, 8, "with fewer points, chance gives such a tau more than once in 100");

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

/* Return the bytes a second by which the periods' least live bytes rise from period `first` to the
 * end; 0: no steady rise. */
static double slope_from(const struct timeline *t, uint32_t first)
{
	double x[TIMELINE_PERIODS], y[TIMELINE_PERIODS], slope;
	size_t n = 0;

	/* The last period is unfinished: its least value may be from its start. */
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
