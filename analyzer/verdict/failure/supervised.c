#include "verdict/failure/supervised.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, DYING_NS, 2000000000u,
    "freeing the pages of a dying process takes the kernel about a second for tens of GiB");
TUNED(uint64_t, ROUND_NS, 50000000,
    "samples of one round of the supervisor are some milliseconds apart");
TUNED(uint64_t, BESIDE_NS, 250000000,
    "a process that grows is sampled every 100 ms; an older sample says less than what lived "
    "since");
TUNED(uint64_t, FELL_PART, 16, "a live process frees less than a sixteenth between two samples");
TUNED(uint64_t, SEEN_NS, 12000000000u,
    "an unchanged process is written down about every ten seconds");

static bool is_cgroup(uint32_t key)
{
	return (key >= TRACE_LEVEL_CG_CURRENT && key <= TRACE_LEVEL_CG_HIGH_COUNT) ||
	       (key >= TRACE_LEVEL_SYS_TOTAL && key <= TRACE_LEVEL_SYS_COMMITTED);
}

static void note_resident(struct supervised *s, uint64_t rss, uint64_t time_ns)
{
	struct period *p = timeline_at(&s->resident, time_ns, 0);

	p->rss = num_most(p->rss, rss);
}

static bool fell(const struct supervised *s, const struct event *e, uint32_t key)
{
	uint64_t before, now;

	return levels_get(&s->last, key, &before) && event_level(e, key, &now) &&
	       now < before - before / FELL_PART;
}

static bool somebody_killed(const struct supervised *s, const struct event *e)
{
	uint64_t before, now;

	return levels_get(&s->last, TRACE_LEVEL_CG_OOM_KILL, &before) &&
	       event_level(e, TRACE_LEVEL_CG_OOM_KILL, &now) && now > before;
}

/* True if the group has less than the process alone had: the process is being torn down, and the
 * rest is still its own. */
static bool below_own(const struct supervised *s, const struct event *e)
{
	uint64_t own, now;

	return levels_get(&s->last, TRACE_LEVEL_RSS_ANON, &own) &&
	       event_level(e, TRACE_LEVEL_CG_ANON, &now) && now < own - own / SUPERVISED_BELOW_OWN;
}

/* True if the group has no more than in the previous sample, in which it had fallen. */
static bool falls_on(const struct supervised *s, const struct event *e, uint64_t time_ns)
{
	uint64_t before, now;

	return levels_get(&s->fallen, TRACE_LEVEL_CG_CURRENT, &before) &&
	       event_level(e, TRACE_LEVEL_CG_CURRENT, &now) && now <= before &&
	       time_ns <= s->fallen.time_ns[TRACE_LEVEL_CG_CURRENT] + DYING_NS;
}

/* True for a second record of slower levels, which follows the fast ones of the same sample. */
static bool is_rest_of_look(const struct event *e)
{
	uint64_t value;

	return !event_level(e, TRACE_LEVEL_RSS, &value) &&
	       !event_level(e, TRACE_LEVEL_RSS_PEAK, &value);
}

/* True if the process's memory, or the cgroup's usage, has fallen since the process's last sample:
 * it may be dying, and no longer has its share of the cgroup at the out-of-memory. */
static bool may_be_dying(
    const struct supervised *s, const struct event *e, bool ours, uint64_t time_ns)
{
	if (ours)
		return is_rest_of_look(e) ? s->fallen.known[TRACE_LEVEL_RSS]
					  : fell(s, e, TRACE_LEVEL_RSS);
	return somebody_killed(s, e) || below_own(s, e) || falls_on(s, e, time_ns) ||
	       (s->last.known[TRACE_LEVEL_RSS] &&
		   time_ns > s->last.time_ns[TRACE_LEVEL_RSS] + ROUND_NS &&
		   fell(s, e, TRACE_LEVEL_CG_CURRENT));
}

/* True for usage; false for a cgroup's counters and limits. */
static bool is_usage(uint32_t key)
{
	return key <= TRACE_LEVEL_RSS_SHMEM || key == TRACE_LEVEL_VSIZE || key == TRACE_LEVEL_PSS ||
	       (key >= TRACE_LEVEL_CG_CURRENT && key <= TRACE_LEVEL_CG_SWAP &&
		   key != TRACE_LEVEL_CG_MAX && key != TRACE_LEVEL_CG_PEAK);
}

/* True if that level is the others', after the cgroup's killer has struck. */
static bool is_others(const struct supervised *s, uint32_t key)
{
	return key == TRACE_LEVEL_CG_SHMEM || (s->finished && key == TRACE_LEVEL_CG_ANON);
}

/* Accept the samples since the fall: the process lived on, or ended by itself. */
static void catch_up(struct supervised *s)
{
	for (uint32_t k = 0; k < MODEL_LEVELS; k++)
		if (s->fallen.known[k])
			levels_set(&s->last, k, s->fallen.value[k], s->fallen.time_ns[k]);
	memset(s->fallen.known, 0, sizeof(s->fallen.known));
}

/* Keep the process's sample nearest to the cgroup's newest, if they are of one round. */
static void note_beside(struct supervised *s, uint64_t time_ns)
{
	const struct levels *l = &s->last;
	uint64_t group = l->time_ns[TRACE_LEVEL_CG_ANON], own = l->time_ns[TRACE_LEVEL_RSS_ANON];

	if (!l->known[TRACE_LEVEL_CG_ANON] || !l->known[TRACE_LEVEL_RSS_ANON])
		return;
	if (group == time_ns)
		s->beside_ns = group - own;
	else if (own == time_ns && own - group < s->beside_ns)
		s->beside_ns = own - group;
	else
		return;
	s->last.known[MODEL_LEVEL_BESIDE] = false;
	if (s->beside_ns <= BESIDE_NS)
		levels_set(&s->last, MODEL_LEVEL_BESIDE, l->value[TRACE_LEVEL_RSS_ANON], group);
}

/* Nobody sees the end of a process that is not the supervisor's own child: its samples stop. */
static bool died_of_signal(const struct supervised *s)
{
	uint32_t key = s->fallen.known[TRACE_LEVEL_RSS] ? TRACE_LEVEL_RSS : TRACE_LEVEL_CG_CURRENT;

	if (!s->ended)
		return s->struck;
	return s->how == TRACE_END_SIGNAL && s->ended_ns <= s->fallen.time_ns[key] + DYING_NS;
}

static bool was_peak(const struct supervised *s, uint64_t peak)
{
	uint64_t rss;

	return levels_get(&s->last, TRACE_LEVEL_RSS, &rss) && rss >= peak - peak / SUPERVISED_BATCH;
}

/* The other processes, at the cgroup's last sample and since. */
#define OTHERS_MAX 256u

struct others {
	struct other {
		uint32_t pid;
		uint64_t anonymous, private;
		uint64_t then; /* private bytes at the cgroup's last sample */
		/* private bytes were sampled; a newly forked process shares its pages */
		bool exact;
	} at[OTHERS_MAX];
	uint32_t count;
};

/* `struck`: the killer struck. Memory that a process frees later was still used at that time. */
static void note_other(struct others *o, const struct event *e, bool struck)
{
	uint64_t own = 0, anonymous;
	struct other *p = o->at;
	bool exact = event_level(e, TRACE_LEVEL_PRIVATE_DIRTY, &own);

	while (p < o->at + o->count && p->pid != e->u.child.pid)
		p++;
	if (p == o->at + o->count) {
		if (o->count == OTHERS_MAX)
			return;
		*p = (struct other){.pid = e->u.child.pid};
		o->count++;
	}
	if (!event_level(e, TRACE_LEVEL_RSS_ANON, &anonymous))
		anonymous = p->anonymous;
	if (!exact)
		own = p->exact ? num_less(p->private + anonymous, p->anonymous) : 0;
	if (struck && own < p->private)
		return;
	p->exact |= exact;
	p->private = own;
	p->anonymous = anonymous;
}

static void forget_other(struct others *o, uint32_t pid)
{
	for (uint32_t i = 0; i < o->count; i++)
		if (o->at[i].pid == pid)
			o->at[i] = o->at[--o->count];
}

/* Mark the others at a cgroup's sample: growth counts from here. */
static void mark_others(struct others *o)
{
	for (uint32_t i = 0; i < o->count; i++)
		o->at[i].then = o->at[i].private;
}

static uint64_t others_grown(const struct others *o)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < o->count; i++)
		sum += num_less(o->at[i].private, o->at[i].then);
	return sum;
}

static void take(struct supervised *s, const struct event *e, uint64_t time_ns)
{
	bool ours = e->u.child.pid == s->pid;
	uint64_t rss = 0, highest = 0, peak, low, size;
	bool fallen, killed = somebody_killed(s, e);

	/* A process that grows again, or is constant for a while, is not dying. */
	if (ours && levels_get(&s->fallen, TRACE_LEVEL_RSS, &low) &&
	    (event_level_value(e, TRACE_LEVEL_RSS) > low ||
		time_ns > s->fallen.time_ns[TRACE_LEVEL_RSS] + DYING_NS))
		catch_up(s);
	fallen = may_be_dying(s, e, ours, time_ns);
	s->struck = (s->struck || killed) && !(ours && event_level_value(e, TRACE_LEVEL_RSS));
	for (uint32_t i = 0; i < e->level_count; i++) {
		const struct event_level *l = &e->levels[i];
		bool seen;

		/* Any process's sample has the cgroup's levels. */
		if (!ours && !is_cgroup(l->key))
			continue;
		if (!ours && (s->finished || killed) && is_others(s, l->key) &&
		    !s->after.known[l->key])
			levels_set(&s->after, l->key, l->value, time_ns);
		/* The dead process's memory was not free while it lived. */
		if (s->finished &&
		    ((is_cgroup(l->key) && is_usage(l->key)) ||
			l->key == TRACE_LEVEL_SYS_AVAILABLE || l->key == TRACE_LEVEL_SYS_SWAP_FREE))
			continue;
		if (fallen && is_usage(l->key)) {
			levels_set(&s->fallen, l->key, l->value, time_ns);
			continue;
		}
		if (is_usage(l->key))
			s->fallen.known[l->key] = s->after.known[l->key] = false;
		if (l->key == TRACE_LEVEL_RSS_PEAK) {
			note_resident(s, l->value, time_ns);
			/* The kernel's peak matters only if it is higher, or if the last sample was
			 * the peak itself: then nothing came later. */
			if (levels_get(&s->last, l->key, &peak) && l->value <= peak) {
				if (was_peak(s, peak))
					levels_set(&s->last, l->key, peak, time_ns);
				continue;
			}
		}
		if (l->key == TRACE_LEVEL_THREADS &&
		    !event_level(e, TRACE_LEVEL_VIRT_THREADS, &size))
			levels_carry_stacks(&s->last, l->value, s->stack_each);
		seen = l->key < MODEL_LEVELS && s->first.known[l->key];
		if (!seen)
			levels_set(&s->first, l->key, l->value, time_ns);
		levels_set(&s->last, l->key, l->value, time_ns);
		if (l->key == TRACE_LEVEL_RSS)
			rss = l->value;
	}
	note_beside(s, time_ns);
	if (ours && !fallen && is_rest_of_look(e) && s->highest.known[TRACE_LEVEL_RSS] &&
	    s->highest.time_ns[TRACE_LEVEL_RSS] == s->last.time_ns[TRACE_LEVEL_RSS])
		s->highest = s->last;
	if (!ours || !rss)
		return;
	note_resident(s, rss, time_ns);
	catch_up(s);
	levels_get(&s->highest, TRACE_LEVEL_RSS, &highest);
	if (rss >= highest)
		s->highest = s->last;
}

uint32_t supervised_killed_with(const struct supervised *s, uint64_t last_ns)
{
	uint64_t seen = num_most(last_ns, s->last.time_ns[TRACE_LEVEL_RSS]);

	return s->root_killed != s->pid && !s->ended && s->root_killed &&
		       seen + SEEN_NS >= s->root_killed_ns
		   ? s->root_killed
		   : 0;
}

uint64_t supervised_stack_each(const struct feed *own)
{
	const char *each = own->info(own->self, "limit.stack");

	return each ? strtoull(each, NULL, 10) : 0; /* "unlimited": 0 */
}

int supervised_read(
    struct feed *feed, const struct supervised_of *of, struct supervised *out, struct err *err)
{
	uint32_t pid = of->pid;
	struct others others = {.count = 0};
	struct event e;
	int rc;

	memset(out, 0, sizeof(*out));
	out->pid = pid;
	out->stack_each = of->stack_each;
	timeline_init(&out->resident);
	rc = feed->rewind(feed->self, err);
	if (rc)
		return rc;
	while ((rc = feed->next(feed->self, &e, err)) == 1) {
		int64_t at = (int64_t)e.time_ns + of->shift_ns;
		uint64_t time_ns = at > 0 ? (uint64_t)at : 0;

		if (e.kind == EV_LEVEL && e.space == TRACE_SPACE_HOST) {
			if (e.u.child.pid && e.u.child.pid != pid)
				note_other(&others, &e, out->fallen.known[TRACE_LEVEL_CG_CURRENT]);
			take(out, &e, time_ns);
			if (out->last.known[TRACE_LEVEL_CG_ANON] &&
			    out->last.time_ns[TRACE_LEVEL_CG_ANON] == time_ns)
				mark_others(&others);
		} else if (e.kind == EV_CHILD_END) {
			out->finished |= e.u.child.flags & 1;
			if (!out->finished)
				forget_other(&others, e.u.child.pid);
			if ((e.u.child.flags & 1) && e.u.child.how == TRACE_END_SIGNAL &&
			    e.u.child.code == SIGKILL) {
				out->root_killed = e.u.child.pid;
				out->root_killed_ns = time_ns;
			}
			if (e.u.child.pid != pid)
				continue;
			out->ended = true;
			out->how = e.u.child.how;
			out->code = e.u.child.code;
			out->ended_ns = time_ns;
		}
	}
	out->others_grown = others_grown(&others);
	if (!died_of_signal(out))
		catch_up(out);
	return rc;
}
