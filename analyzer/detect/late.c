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

/* What was released on the device until the moment. */
struct work {
	uint64_t first_ns, last_ns; /* acquisition of its first and of its newest block */
	uint64_t released, acquired; /* blocks since first_ns */
	uint64_t since; /* blocks since last_ns */
};

static struct work work_of(const struct callsites *c)
{
	struct work w = {.first_ns = UINT64_MAX};

	for (uint32_t i = 0; i < c->count; i++)
		for (uint32_t k = 0; k < c->list[i].facts.step_count; k++) {
			const struct step *s = &c->list[i].facts.steps[k];

			if (!s->freed_count)
				continue;
			w.first_ns = num_least(w.first_ns, s->time_ns);
			w.last_ns = num_most(w.last_ns, s->last_ns);
			w.released += s->freed_count;
		}
	for (uint32_t i = 0; i < c->count; i++)
		for (uint32_t k = 0; k < c->list[i].facts.step_count; k++) {
			const struct step *s = &c->list[i].facts.steps[k];

			if (s->time_ns > w.last_ns)
				w.since += s->count;
			else if (s->time_ns >= w.first_ns)
				w.acquired += s->count;
		}
	return w;
}

bool late_at(const struct scene *scene, uint32_t callsite, struct late *out)
{
	const struct callsites *c = scene->callsites;
	const struct callsite *p = &c->list[callsite];
	struct late l = {.again = false};
	struct work w;

	if (!scene->space || p->facts.freed_count || p->owner == OWNER_RUNTIME)
		return false;
	w = work_of(c);
	if (w.released < WORKED_MIN || w.since > LATE_BLOCKS ||
	    (double)(w.since + (scene->end.refused != NULL)) * (double)w.released <
		MISSED_MIN * (double)w.acquired)
		return false;
	for (uint32_t k = 0; k < p->facts.step_count; k++) {
		const struct step *s = &p->facts.steps[k];

		if (s->time_ns > w.last_ns) {
			l.since_ns = l.bytes ? l.since_ns : s->time_ns;
			l.bytes += s->bytes;
			l.blocks += s->count;
		} else if (s->last_ns < w.first_ns) {
			l.again = true;
		} else {
			return false; /* a part of the work */
		}
	}
	*out = l;
	return l.blocks && scene_in_flight(scene, callsite, p->facts.live_bytes) <= ONE_LANE;
}
