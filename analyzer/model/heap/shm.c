#include "model/heap/shm.h"

#include "util/num.h"
#include "util/tuned.h"

TUNED(unsigned, FULL_PART, 64u, "one page more may be free than was refused");

const struct shm_volume *shm_find(const struct shm *s, uint64_t device)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->list[i].device == device)
			return &s->list[i];
	return NULL;
}

uint32_t shm_note(struct shm *s, const struct event *e)
{
	uint64_t device, total, free, written = 0, used;
	struct shm_volume *v;

	if (!event_level(e, TRACE_LEVEL_SHM_DEVICE, &device) ||
	    !event_level(e, TRACE_LEVEL_SHM_TOTAL, &total) ||
	    !event_level(e, TRACE_LEVEL_SHM_FREE, &free) || !total)
		return 0;
	v = (struct shm_volume *)shm_find(s, device);
	if (!v && s->count == SHM_VOLUMES)
		return 0;
	if (!v) {
		v = &s->list[s->count++];
		*v = (struct shm_volume){.device = device, .free = free};
	}
	free = num_least(free, total);
	used = total - free;
	event_level(e, TRACE_LEVEL_SHM_WRITTEN, &written);
	/* Whoever took the missing bytes, they are no longer available. */
	v->pending = num_less(v->pending, num_less(v->free, free));
	if (!v->mapped)
		v->others = num_less(used, written);
	v->total = total;
	v->free = free;
	v->time_ns = e->time_ns;
	if (e->kind == EV_MAP) {
		v->pending += num_less(e->size, written);
		v->name = e->u.map.name;
	}
	return (uint32_t)(v - s->list) + 1;
}

void shm_moved(struct shm *s, uint32_t number, int64_t change)
{
	struct shm_volume *v;

	if (!number || number > s->count)
		return;
	v = &s->list[number - 1];
	v->mapped = change < 0 ? num_less(v->mapped, (uint64_t)-change)
			       : num_sum(v->mapped, (uint64_t)change);
	v->pending = num_least(v->pending, v->mapped);
}

bool shm_is_full(const struct shm_volume *v)
{
	return v->free <= v->total / FULL_PART;
}

bool shm_is_exceeded(const struct shm_volume *v)
{
	return v->pending > v->free;
}

bool shm_is_short(const struct shm_volume *v)
{
	return shm_is_full(v) || shm_is_exceeded(v);
}
