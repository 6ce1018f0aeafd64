/*
 * kill.c - see kill.h.
 *
 * SIGKILL does not name its sender, and nobody in the process sees it come. The rule, from the
 * strongest evidence to none:
 *
 *  1. The cgroup's count of OOM kills rose while it ran, or the kernel's log names the process: the
 *     kernel's OOM killer.
 *  2. The cgroup was within a tenth of its limit, or less than a twentieth of the machine's memory
 *     was available: memory, whoever did it.
 *  3. Memory still rose: over the last third of the run it stood higher than ever before, by a
 *     sixteenth at least (live bytes, or resident ones by the samples and by the kernel's account
 *     at the end), and the end came soon after the highest point, or what was resident still rose
 *     then. When, besides, a cause whose shape is there made that growth, it is taken for a kill
 *     for want of memory. It need not be the kernel's: earlyoom, systemd-oomd and the kubelet kill
 *     in the same way, and the counters tell which.
 *     But where plenty of both was left (outlook.c), it was killed for another reason, and memory
 *     had not run out: what grew is named all the same, as it would have filled the memory one day.
 *     There slow growth counts, too: what lives rises steadily.
 *  4. It rose, but no shape is there; or nobody watched the counters; or the machine's count rose
 *     and may have been for this one: `unknown`.
 *  5. Memory was flat, the counters were watched to the end, and none rose: the kill had another
 *     reason, and nothing ran out.
 */
#include "verdict/failure/kill.h"

#include <signal.h>

#include "verdict/failure/outlook.h"

/* Of what was reached in the last third. */
#define RISE_PART 16u
/* Of what was resident before the last eighth: more than chance. */
#define STILL_PART 64u

/* Did that count rise while it ran? One that was not watched to the end does not say that it did
 * not.
 */
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
	/* The machine's count is of everybody's kills, also in other containers; the group's own is
	 * of this one's, whatever its reason. */
	if (group)
		return KILL_COUNTER_QUIET;
	return machine_rose ? KILL_COUNTER_ROSE
	       : machine    ? KILL_COUNTER_QUIET
			    : KILL_COUNTER_UNSEEN;
}

/* The highest of both parts of a run. */
static void highest(
    const struct timeline *t, uint64_t cut_ns, bool resident, uint64_t *early, uint64_t *late)
{
	for (uint32_t i = 0; i < t->used; i++) {
		uint64_t value = resident ? t->periods[i].rss : t->periods[i].most;
		uint64_t *to = (uint64_t)i << t->shift < cut_ns ? early : late;

		if (value > *to)
			*to = value;
	}
}

static bool rises(uint64_t early, uint64_t late)
{
	return late > early && late - early >= late / RISE_PART;
}

/* In the last eighth of a run more became resident than ever before. What an allocator holds and
 * does not give back goes on rising so, whatever of it lives just then. */
static bool still_rises(
    const struct model *m, const struct supervised *s, uint64_t from, uint64_t end)
{
	uint64_t cut = end - (end - from) / 8, early = 0, late = 0;

	highest(&m->timeline, cut, true, &early, &late);
	if (s)
		highest(&s->resident, cut, true, &early, &late);
	return early && late > early + early / STILL_PART;
}

static void read_rise(const struct model *m, const struct supervised *s, struct kill_view *out)
{
	uint64_t from = m->run.first_ns == UINT64_MAX ? 0 : m->run.first_ns, end = m->run.last_ns,
		 cut;
	bool resident;

	if (s && s->ended && s->ended_ns > end)
		end = s->ended_ns;
	cut = from + (end > from ? (end - from) / 3 * 2 : 0);
	highest(&m->timeline, cut, false, &out->live_early, &out->live_late);
	highest(&m->timeline, cut, true, &out->rss_early, &out->rss_late);
	if (s)
		highest(&s->resident, cut, true, &out->rss_early, &out->rss_late);
	/* Without a look early on, a later one rises above nothing. */
	resident = out->rss_early && rises(out->rss_early, out->rss_late);
	out->rising = rises(out->live_early, out->live_late) || resident;
	out->rising &= failure_moment(m) == AT_PEAK ||
		       m->blocks.bytes + m->maps.bytes >= m->peak.bytes - m->peak.bytes / 8 ||
		       (resident && end > from && still_rises(m, s, from, end));
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

void kill_read(const struct model *m, const struct trace_facts *facts, const struct supervised *s,
    bool victim, struct failure_view *failure, struct kill_view *out)
{
	struct ending end = ending_of(m, facts, s);
	bool known;

	*out = (struct kill_view){.seen = end.how == END_SIGNAL};
	if (failure->kind != FAILURE_NONE ||
	    (!(end.how == END_SIGNAL && end.code == SIGKILL) && end.how != END_UNKNOWN))
		return;
	out->killed = true;
	out->counter = counter_of(s);
	read_rise(m, s, out);
	outlook_read(m, s, &out->outlook);
	failure->time_ns = m->run.last_ns;
	failure_kill_limit(m, s, failure);
	if (rose(s, TRACE_LEVEL_CG_OOM_KILL, &known)) {
		failure->kind = FAILURE_OOM_KILL;
		failure->kill_evidence = "the cgroup's count of OOM kills rose";
		failure_kill_at_limit(m, s, failure);
	} else if (victim) {
		failure->kind = FAILURE_OOM_KILL;
		failure->kill_evidence = "the kernel's log names it as the OOM killer's victim";
	} else if (failure->limit == LIMIT_CGROUP) {
		failure->kind = FAILURE_OOM_KILL;
		failure->kill_evidence = "killed with the cgroup within a tenth of its limit";
	} else if (failure->limit == LIMIT_SYSTEM) {
		failure->kind = FAILURE_OOM_KILL;
		failure->kill_evidence =
		    "killed with less than a twentieth of the machine's memory available";
	} else {
		failure->kill_evidence = flat_evidence(out);
	}
}
