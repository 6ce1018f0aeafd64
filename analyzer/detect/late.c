/*
 * late.c - see late.h. Work shows by what it releases: where it released a block for every two or
 * three that it acquired, and then blocks of another line follow each other without one release,
 * the work has stopped, and they are of a single piece of other work.
 */
#include "detect/late.h"

#include "util/num.h"
#include "util/tuned.h"

TUNED(uint64_t, WORKED_MIN, 16u, "requests come again and again; a start releases a few blocks");
TUNED(double, MISSED_MIN, 3.0,
    "of what usually comes with so many blocks, one or two may be missing by chance");
TUNED(uint64_t, LATE_BLOCKS, 64u,
    "the more blocks, the likelier each is of a request of another kind, which released nothing");
TUNED(double, ONE_LANE, 0.5, "as for pools: what other requests hold was not made in one go");

struct late_work late_work_of(const struct scene *scene)
{
	const struct callsites *c = scene->callsites;
	struct late_work w = {.first_ns = UINT64_MAX};
	uint64_t released = 0, acquired = 0, since = 0; /* blocks; acquired and released in work */

	if (!scene->space)
		return w;
	for (uint32_t i = 0; i < c->count; i++)
		for (uint32_t k = 0; k < c->list[i].facts.step_count; k++) {
			const struct step *s = &c->list[i].facts.steps[k];

			if (!s->freed_count)
				continue;
			w.first_ns = num_least(w.first_ns, s->time_ns);
			w.last_ns = num_most(w.last_ns, s->last_ns);
			released += s->freed_count;
		}
	for (uint32_t i = 0; i < c->count; i++)
		for (uint32_t k = 0; k < c->list[i].facts.step_count; k++) {
			const struct step *s = &c->list[i].facts.steps[k];

			if (s->time_ns > w.last_ns)
				since += s->count;
			else if (s->time_ns >= w.first_ns)
				acquired += s->count;
		}
	w.stopped = released >= WORKED_MIN && since <= LATE_BLOCKS &&
		    (double)(since + (scene->end.refused != NULL)) * (double)released >=
			MISSED_MIN * (double)acquired;
	return w;
}

bool late_at(
    const struct scene *scene, const struct late_work *work, uint32_t callsite, struct late *out)
{
	const struct callsite *p = &scene->callsites->list[callsite];
	struct late l = {.again = false};

	if (!work->stopped || p->facts.freed_count || p->owner == OWNER_RUNTIME)
		return false;
	for (uint32_t k = 0; k < p->facts.step_count; k++) {
		const struct step *s = &p->facts.steps[k];

		if (s->time_ns > work->last_ns) {
			l.since_ns = l.bytes ? l.since_ns : s->time_ns;
			l.bytes += s->bytes;
			l.blocks += s->count;
		} else if (s->last_ns < work->first_ns) {
			l.again = true;
		} else {
			return false; /* a part of the work */
		}
	}
	*out = l;
	return l.blocks && scene_in_flight(scene, callsite, p->facts.live_bytes) <= ONE_LANE;
}
