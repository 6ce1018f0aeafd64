/* supervised.c - see supervised.h. */
#include "verdict/supervised.h"

#include <string.h>

static bool is_cgroup(uint32_t key)
{
	return (key >= TRACE_LEVEL_CG_CURRENT && key <= TRACE_LEVEL_CG_HIGH) ||
	       (key >= TRACE_LEVEL_SYS_TOTAL && key <= TRACE_LEVEL_SYS_OOM_KILL);
}

static void note_resident(struct supervised *s, uint64_t rss, uint64_t time_ns)
{
	struct period *p = timeline_at(&s->resident, time_ns, 0);

	if (rss > p->rss)
		p->rss = rss;
}

/*
 * Has the cgroup's usage fallen since the process was last seen? Then it may be its own memory that
 * goes, while it dies: what is charged to whom then is not how it was when memory ran out. Samples
 * of one round of the supervisor are a few milliseconds apart.
 */
static bool fell_behind(const struct supervised *s, const struct event *e, uint64_t time_ns)
{
	const uint64_t round_ns = 50000000;
	uint64_t before;

	if (!s->last.known[TRACE_LEVEL_RSS] ||
	    time_ns <= s->last.time_ns[TRACE_LEVEL_RSS] + round_ns ||
	    !levels_get(&s->last, TRACE_LEVEL_CG_CURRENT, &before))
		return false;
	for (uint32_t i = 0; i < e->level_count; i++)
		if (e->levels[i].key == TRACE_LEVEL_CG_CURRENT)
			return e->levels[i].value < before - before / 16;
	return false;
}

static bool is_usage(uint32_t key)
{
	return (key >= TRACE_LEVEL_CG_CURRENT && key <= TRACE_LEVEL_CG_SWAP &&
		key != TRACE_LEVEL_CG_MAX && key != TRACE_LEVEL_CG_PEAK);
}

/* It lived on, or ended by itself: the newer samples are as good. */
static void catch_up(struct supervised *s)
{
	for (uint32_t k = TRACE_LEVEL_CG_CURRENT; k <= TRACE_LEVEL_CG_SWAP; k++)
		if (s->fallen.known[k])
			levels_set(&s->last, k, s->fallen.value[k], s->fallen.time_ns[k]);
	memset(s->fallen.known, 0, sizeof(s->fallen.known));
}

static void take(struct supervised *s, const struct event *e, uint64_t time_ns)
{
	bool ours = e->u.child.pid == s->pid;
	bool fallen = !ours && fell_behind(s, e, time_ns);
	uint64_t rss = 0, highest = 0, peak;

	for (uint32_t i = 0; i < e->level_count; i++) {
		const struct event_level *l = &e->levels[i];
		bool seen;

		/* The cgroup is everybody's, whichever process a sample is filed under. */
		if (!ours && !is_cgroup(l->key))
			continue;
		if (fallen && is_usage(l->key)) {
			levels_set(&s->fallen, l->key, l->value, time_ns);
			continue;
		}
		if (!ours && is_usage(l->key))
			s->fallen.known[l->key] = false;
		/* Newer than the sample before it only where it says more. */
		if (l->key == TRACE_LEVEL_RSS_PEAK) {
			note_resident(s, l->value, time_ns);
			if (levels_get(&s->last, l->key, &peak) && l->value <= peak)
				continue;
		}
		seen = l->key < MODEL_LEVELS && s->first.known[l->key];
		if (!seen)
			levels_set(&s->first, l->key, l->value, time_ns);
		levels_set(&s->last, l->key, l->value, time_ns);
		if (l->key == TRACE_LEVEL_RSS)
			rss = l->value;
	}
	if (!ours || !rss)
		return;
	note_resident(s, rss, time_ns);
	catch_up(s);
	levels_get(&s->highest, TRACE_LEVEL_RSS, &highest);
	if (rss >= highest)
		s->highest = s->last;
}

int supervised_read(
    struct feed *feed, uint32_t pid, int64_t shift_ns, struct supervised *out, struct err *err)
{
	struct event e;
	int rc;

	memset(out, 0, sizeof(*out));
	out->pid = pid;
	timeline_init(&out->resident);
	rc = feed->rewind(feed->self, err);
	if (rc)
		return rc;
	while ((rc = feed->next(feed->self, &e, err)) == 1) {
		int64_t at = (int64_t)e.time_ns + shift_ns;
		uint64_t time_ns = at > 0 ? (uint64_t)at : 0;

		if (e.kind == EV_LEVEL) {
			take(out, &e, time_ns);
		} else if (e.kind == EV_CHILD_END) {
			out->finished |= e.u.child.flags & 1;
			if (e.u.child.pid != pid)
				continue;
			out->ended = true;
			out->how = e.u.child.how;
			out->code = e.u.child.code;
			out->ended_ns = time_ns;
		}
	}
	if (!(out->ended && out->how == TRACE_END_SIGNAL))
		catch_up(out);
	return rc;
}
