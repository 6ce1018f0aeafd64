/* group.c - see group.h. */
#include "verdict/group.h"

#include "util/num.h"

/* The anonymous resident bytes of the process at the time of another sample. */
static uint64_t anonymous_at(const struct model *m, const struct levels *v, uint64_t time_ns)
{
	uint64_t value = levels_value(v, TRACE_LEVEL_RSS_ANON), then, now;
	double part, moved;

	if (!v->known[TRACE_LEVEL_RSS_ANON])
		return 0;
	then = timeline_live(&m->timeline, v->time_ns[TRACE_LEVEL_RSS_ANON]);
	now = timeline_live(&m->timeline, time_ns);
	part = then && value < then ? (double)value / (double)then : 1;
	moved = ((double)now - (double)then) * part;
	return moved < 0 ? num_less(value, (uint64_t)-moved) : value + (uint64_t)moved;
}

struct group group_of(const struct model *m, const struct levels *v)
{
	struct group g = {0};
	uint64_t anonymous, own, at;

	if (levels_get(v, TRACE_LEVEL_CG_ANON, &anonymous)) {
		at = v->time_ns[TRACE_LEVEL_CG_ANON];
		own = anonymous_at(m, v, at);
		/* Much less than the process alone had: looked at when that was gone already, which
		 * it was not while it was itself looked at. */
		g.others = at >= m->last_ns && at > v->time_ns[TRACE_LEVEL_RSS_ANON] &&
				   anonymous < own - own / 8
			       ? anonymous
			       : num_less(anonymous, own);
	}
	g.shmem = levels_value(v, TRACE_LEVEL_CG_SHMEM);
	g.kernel = levels_value(v, TRACE_LEVEL_CG_KERNEL);
	g.cache = num_less(levels_value(v, TRACE_LEVEL_CG_FILE), g.shmem);
	return g;
}

struct scene_others group_strangers(const struct model *m, const struct levels *v,
    const struct failure_view *failure, uint64_t known)
{
	struct scene_others others = {0};
	struct group g = group_of(m, v);

	if (failure->limit == LIMIT_CGROUP) {
		others.known = v->known[TRACE_LEVEL_CG_ANON];
		others.bytes = num_less(
		    g.others + num_less(g.shmem, levels_value(v, TRACE_LEVEL_RSS_SHMEM)), known);
	} else if (failure->limit == LIMIT_SYSTEM) {
		others.known = true;
		others.bytes =
		    num_less(failure->usage_bytes, levels_value(v, TRACE_LEVEL_RSS) + known);
	}
	return others;
}
