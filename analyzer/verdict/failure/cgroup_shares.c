#include "verdict/failure/cgroup_shares.h"

#include "util/num.h"
#include "util/tuned.h"
#include "verdict/failure/failure.h"

TUNED(uint64_t, GONE_PART, 8,
    "cgroup and process are sampled one after the other, and differ by less while both live");

/* Return the live bytes at that time, without shared memory. */
static uint64_t private_at(const struct model *m, uint64_t time_ns)
{
	return num_less(timeline_live(&m->timeline, time_ns),
	    timeline_came(&m->timeline, time_ns, CAME_SHARED));
}

/* Return the process's anonymous resident bytes at the time of a cgroup's sample: sampled beside
 * it, or carried there. */
static uint64_t anonymous_at(const struct model *m, const struct levels *v, uint64_t time_ns)
{
	uint64_t value = levels_value(v, TRACE_LEVEL_RSS_ANON), then, now;
	double part, moved;

	if (v->known[MODEL_LEVEL_BESIDE] && v->time_ns[MODEL_LEVEL_BESIDE] == time_ns)
		return v->value[MODEL_LEVEL_BESIDE];
	if (!v->known[TRACE_LEVEL_RSS_ANON])
		return 0;
	then = private_at(m, v->time_ns[TRACE_LEVEL_RSS_ANON]);
	now = private_at(m, time_ns);
	part = then && value < then ? (double)value / (double)then : 1;
	moved = ((double)now - (double)then) * part;
	return moved < 0 ? num_less(value, (uint64_t)-moved) : value + (uint64_t)moved;
}

struct cgroup_shares cgroup_shares_of(const struct model *m, const struct levels *v)
{
	struct cgroup_shares g = {0};
	uint64_t anonymous, own, at;

	if (levels_get(v, TRACE_LEVEL_CG_ANON, &anonymous)) {
		at = v->time_ns[TRACE_LEVEL_CG_ANON];
		own = anonymous_at(m, v, at);
		/* The group has much less than the process alone had: the process was gone at the
		 * group's sample, which is all the others'. */
		g.others = at >= m->run.last_ns && at > v->time_ns[TRACE_LEVEL_RSS_ANON] &&
				   anonymous < own - own / GONE_PART
			       ? anonymous
			       : num_less(anonymous, own);
	}
	g.shmem = levels_value(v, TRACE_LEVEL_CG_SHMEM);
	g.kernel = levels_value(v, TRACE_LEVEL_CG_KERNEL);
	g.cache = num_less(levels_value(v, TRACE_LEVEL_CG_FILE), g.shmem);
	return g;
}

void cgroup_shares_carry(const struct model *m, const struct supervised *s, struct levels *v)
{
	struct cgroup_shares g = cgroup_shares_of(m, v);
	uint64_t limit, usage, kills, first, then, room, after, more;
	struct resident now;

	if (!levels_get(&s->first, TRACE_LEVEL_CG_OOM_KILL, &first) ||
	    !levels_get(&s->last, TRACE_LEVEL_CG_OOM_KILL, &kills) || kills == first ||
	    !levels_get(v, TRACE_LEVEL_CG_MAX, &limit) ||
	    /* The latest sample with the parts; the process's own may be newer. */
	    !levels_get(&s->last, TRACE_LEVEL_CG_CURRENT, &usage))
		return;
	if (!failure_resident(m, v, failure_lived(m, failure_moment(m)), &now))
		return;
	then = anonymous_at(m, v, s->last.time_ns[TRACE_LEVEL_CG_CURRENT]);
	room = num_less(limit, usage + num_less(now.anonymous, then));
	if (v->known[TRACE_LEVEL_CG_SHMEM] && levels_get(&s->after, TRACE_LEVEL_CG_SHMEM, &after)) {
		more = num_least(num_less(after, g.shmem), room);
		room -= more;
		v->value[TRACE_LEVEL_CG_SHMEM] += more;
	}
	if (!v->known[TRACE_LEVEL_CG_ANON])
		return;
	more = s->others_grown;
	if (levels_get(&s->after, TRACE_LEVEL_CG_ANON, &after) && num_less(after, g.others) > more)
		more = num_less(after, g.others);
	v->value[TRACE_LEVEL_CG_ANON] += num_least(more, room);
}

struct scene_others cgroup_shares_strangers(const struct model *m, const struct levels *v,
    const struct failure_view *failure, uint64_t known)
{
	struct scene_others others = {0};
	struct cgroup_shares g = cgroup_shares_of(m, v);
	/* Shared memory that the process maps counts as its own, whichever process wrote to it. */
	uint64_t shared = failure_lived(m, failure_moment(m)).shared;

	if (shared < levels_value(v, TRACE_LEVEL_RSS_SHMEM))
		shared = levels_value(v, TRACE_LEVEL_RSS_SHMEM);
	if (failure->limit == LIMIT_CGROUP) {
		others.known = v->known[TRACE_LEVEL_CG_ANON];
		others.bytes = num_less(g.others + num_less(g.shmem, shared), known);
	} else if (failure->limit == LIMIT_SYSTEM) {
		others.known = true;
		others.bytes =
		    num_less(failure->usage_bytes, levels_value(v, TRACE_LEVEL_RSS) + known);
	}
	return others;
}
