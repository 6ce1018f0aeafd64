/*
 * kill.c - see kill.h.
 *
 * SIGKILL does not name its sender, and the process does not notice it. The rule, from the
 * strongest evidence to none:
 *
 *  1. The cgroup's count of OOM kills rose during the run, or the kernel's log names the process:
 *     the kernel's OOM killer struck.
 *  2. The cgroup was within a tenth of its limit, or less than a twentieth of the machine's memory
 *     was available: memory ran out, whoever killed.
 *  3. Memory still rose: in the last third of the run it was higher than before by a sixteenth
 *     (live bytes, or resident bytes as sampled or as the kernel counts them at the end), and the
 *     end came soon after the peak, or resident bytes still rose then. If a cause also explains
 *     that growth, the kill counts as one for lack of memory. The killer need not be the kernel:
 *     earlyoom, systemd-oomd and the kubelet kill likewise, and the counters tell them apart.
 *     If plenty was left of the machine's and the cgroup's memory, a fifth of both, no killer
 *     strikes for lack of memory: the kill had another reason. The growth is named nevertheless,
 * since it would have filled the memory one day, and slow but steady growth of the live bytes
 * counts there, too.
 *  4. Memory rose, but no cause explains it; or nobody watched the counters; or the machine's count
 *     rose, perhaps for this process: `unknown`.
 *  5. Memory was flat, the counters were watched to the end, and none rose: the kill had another
 *     reason, and nothing ran out.
 */
#include "verdict/failure/kill.h"

#include <signal.h>

#include "model/callsite/trend.h"
#include "util/num.h"
#include "util/tuned.h"

TUNED(
    uint64_t, LATE_PART, 3, "a third of the run holds several steps, and loading is over by then");
TUNED(uint64_t, RISE_PART, 16,
    "the peaks of a steady program differ by some percent: a sixteenth is beyond that");
TUNED(uint64_t, STILL_FROM_PART, 8,
    "an eighth of the run is about its end, and still holds several samples");
TUNED(uint64_t, PLENTY_PART, 5,
    "earlyoom (-m 10), systemd-oomd (SwapUsedLimit=90%) and the kubelet (memory.available<100Mi) "
    "wait until less than a tenth is left; twice that allows for old samples");
TUNED(double, STEADY_TAU, 0.7,
    "Kendall's tau of a rise in which chance exchanges three pairs in twenty");
TUNED(size_t, PERIODS_MIN, 8, "with fewer points, chance gives such a tau more than once in 100");

/* True if that count rose during the run. *known: it rose, or was watched to the end. */
static bool rose(const struct supervised *s, uint32_t key, bool *known)
{
	uint64_t first, last;

	*known = false;
	if (!s || !levels_get(&s->first, key, &first) || !levels_get(&s->last, key, &last))
		return false;
	*known = last > first || s->finished;
	return last > first;
}

static enum kill_counter counter_of(const struct supervised *s)
{
	bool group, machine;
	bool group_rose = rose(s, TRACE_LEVEL_CG_OOM_KILL, &group);
	bool machine_rose = rose(s, TRACE_LEVEL_SYS_OOM_KILL, &machine);

	if (group_rose)
		return KILL_COUNTER_ROSE;
	/* The machine counts kills in all containers, the group only its own. */
	if (group)
		return KILL_COUNTER_QUIET;
	return machine_rose ? KILL_COUNTER_ROSE
	       : machine    ? KILL_COUNTER_QUIET
			    : KILL_COUNTER_UNSEEN;
}

static void highest(
    const struct timeline *t, uint64_t cut_ns, bool resident, uint64_t *early, uint64_t *late)
{
	for (uint32_t i = 0; i < t->used; i++) {
		uint64_t value = resident ? t->periods[i].rss : t->periods[i].most;
		uint64_t *to = (uint64_t)i << t->shift < cut_ns ? early : late;

		*to = num_most(*to, value);
	}
}

static bool rises(uint64_t early, uint64_t late)
{
	return late > early && late - early >= late / RISE_PART;
}

/* True if resident bytes reached a new peak at the very end of the run. Memory that an allocator
 * keeps goes on rising, whatever the live bytes. */
static bool still_rises(
    const struct model *m, const struct supervised *s, uint64_t from, uint64_t end)
{
	uint64_t cut = end - (end - from) / STILL_FROM_PART, early = 0, late = 0;

	highest(&m->timeline, cut, true, &early, &late);
	if (s)
		highest(&s->resident, cut, true, &early, &late);
	return early && late > early + early / SUPERVISED_BATCH;
}

static void read_rise(const struct model *m, const struct supervised *s, struct kill_view *out)
{
	uint64_t from = m->run.first_ns == UINT64_MAX ? 0 : m->run.first_ns, end = m->run.last_ns,
		 cut;
	bool resident;

	if (s && s->ended && s->ended_ns > end)
		end = s->ended_ns;
	cut = from + (end > from ? (end - from) / LATE_PART * (LATE_PART - 1) : 0);
	highest(&m->timeline, cut, false, &out->live_early, &out->live_late);
	highest(&m->timeline, cut, true, &out->rss_early, &out->rss_late);
	if (s)
		highest(&s->resident, cut, true, &out->rss_early, &out->rss_late);
	/* Without an early sample, a later one rises above nothing. */
	resident = out->rss_early && rises(out->rss_early, out->rss_late);
	out->rising = rises(out->live_early, out->live_late) || resident;
	out->rising &= failure_moment(m) == AT_PEAK ||
		       failure_near_peak(m, m->blocks.bytes + m->maps.bytes) ||
		       (resident && end > from && still_rises(m, s, from, end));
}

static void read_left(const struct room *rooms, size_t count, struct outlook *out)
{
	uint64_t least = UINT64_MAX;

	out->plenty = true;
	for (size_t i = 0; i < count; i++) {
		const struct room *r = &rooms[i];

		if (r->limit != LIMIT_SYSTEM && !limit_is_cgroup(r->limit))
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

/* The forecast extends two slopes of the live bytes: over the run's second half, and over its last
 * quarter. If both rise steadily, the limit is reached between their two moments. */
static void read_trend(
    const struct model *m, const struct room *rooms, size_t count, struct outlook *out)
{
	const struct timeline *t = &m->timeline;
	double half = slope_from(t, t->used / 2), quarter = slope_from(t, t->used / 4 * 3);
	uint64_t least = UINT64_MAX, ends[2];

	out->grows = count && half > 0 && quarter > 0;
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

/* Read how much memory was left, whether live bytes rise steadily, and when they would have filled
 * the memory. `s` may be NULL: then only the process's own measurements count. */
static void outlook_read(
    const struct model *m, const struct supervised *s, bool killed, struct outlook *out)
{
	struct room rooms[FAILURE_ROOMS];
	size_t count = failure_rooms(m, s, rooms);

	read_left(rooms, count, out);
	/* Why it was killed only the machine's memory tells; when a limit is full, that limit. */
	if (out->known || !killed)
		read_trend(m, rooms, count, out);
}

bool kill_with_memory_left(const struct kill_view *k)
{
	return k->killed && k->outlook.plenty && k->counter == KILL_COUNTER_QUIET;
}

static const char *flat_evidence(const struct kill_view *k)
{
	if (k->counter == KILL_COUNTER_ROSE)
		return k->rising ? "killed while its memory rose, and the machine's count of OOM "
				   "kills rose while it ran"
				 : "the machine's count of OOM kills rose while it ran, for this "
				   "process or for another";
	if (k->counter == KILL_COUNTER_UNSEEN)
		return k->seen ? "killed by SIGKILL; no count of OOM kills was watched"
			       : "its end was not seen, and no count of OOM kills was watched";
	if (kill_with_memory_left(k) && !k->rising)
		return k->seen ? "killed by SIGKILL; memory had not run out, and did not grow"
			       : "its end was not seen; memory had not run out, and did not grow";
	return k->seen ? "killed by SIGKILL, not by the kernel's OOM killer: its count did not rise"
		       : "its end was not seen; the count of OOM kills did not rise";
}

bool kill_grew(const struct kill_view *k)
{
	return k->rising || (kill_with_memory_left(k) && k->outlook.grows);
}

enum failure_kind kill_grew_kind(const struct kill_view *k)
{
	return kill_with_memory_left(k) ? FAILURE_KILLED : FAILURE_OOM_KILL;
}

const char *kill_grew_evidence(const struct kill_view *k)
{
	if (kill_with_memory_left(k))
		return k->seen ? "killed by SIGKILL while its memory grew; memory had not run out"
			       : "its end was not seen; its memory grew, and had not run out";
	if (!k->seen)
		return "ended without a word while its memory still rose";
	if (k->counter == KILL_COUNTER_ROSE)
		return "killed while its memory still rose, and the machine's count of OOM kills "
		       "rose";
	if (k->counter == KILL_COUNTER_QUIET)
		return "killed while its memory still rose; the kernel's count of OOM kills did "
		       "not rise, so it was a daemon (earlyoom, systemd-oomd, the kubelet) or a "
		       "person";
	return "killed while its memory still rose; no count of OOM kills was watched";
}

void kill_read(const struct model *m, const struct supervised *s, bool victim,
    struct failure_view *failure, struct kill_view *out)
{
	struct ending end = failure_ending(m, s);
	bool known;

	*out = (struct kill_view){.seen = end.how == END_SIGNAL};
	/* Whether what grew would fill the memory is worth a word, though nothing ended. */
	if (failure->kind == FAILURE_NONE && end.how == END_DETACHED)
		outlook_read(m, s, false, &out->outlook);
	if (failure->kind != FAILURE_NONE ||
	    (!(end.how == END_SIGNAL && end.code == SIGKILL) && end.how != END_UNKNOWN))
		return;
	out->killed = true;
	out->counter = counter_of(s);
	read_rise(m, s, out);
	outlook_read(m, s, true, &out->outlook);
	failure->time_ns = m->run.last_ns;
	failure_kill_limit(m, s, failure);
	failure->kind = FAILURE_OOM_KILL;
	if (rose(s, TRACE_LEVEL_CG_OOM_KILL, &known)) {
		failure->kill_evidence = "the cgroup's count of OOM kills rose";
		failure_kill_at_limit(m, s, failure);
	} else if (victim) {
		failure->kill_evidence = "the kernel's log names it as the OOM killer's victim";
	} else if (failure->limit == LIMIT_CGROUP) {
		failure->kill_evidence = "killed with the cgroup within a tenth of its limit";
	} else if (failure->limit == LIMIT_SYSTEM) {
		failure->kill_evidence =
		    "killed with less than a twentieth of the machine's memory available";
	} else {
		failure->kind = FAILURE_NONE;
		failure->kill_evidence = flat_evidence(out);
	}
}
