#include "model/request/phase.h"

#include <string.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(unsigned, WORK_PERIODS, 4u,
    "what is given back within four periods was scratch memory of work");
TUNED(double, WORK_SHARE, 0.75, "of work most comes back; of loading nearly nothing");
TUNED(
    unsigned, LOADED_PART, 4u, "before a quarter of what lives usually is there a program starts");

static void add(struct phases *p, const struct timeline *t, const char *name, uint64_t start_ns,
    uint64_t end_ns)
{
	if (p->count == PHASES_MAX || end_ns <= start_ns)
		return;
	p->list[p->count++] = (struct phase){.name = name,
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .live_bytes = timeline_live(t, end_ns)};
}

static uint64_t usual(const struct timeline *t, uint32_t first, uint32_t last)
{
	uint64_t sorted[TIMELINE_PERIODS];
	uint32_t n = 0;

	for (uint32_t i = first; i <= last; i++) {
		uint32_t at = n++;

		for (; at && sorted[at - 1] > t->periods[i].last; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = t->periods[i].last;
	}
	return n ? sorted[n / 2] : 0;
}

/* Find when work began: from that period on, most acquired bytes are released. False: never. */
static bool work_began(
    const struct timeline *t, uint64_t first_ns, uint64_t moment_ns, uint64_t *out)
{
	uint32_t first = (uint32_t)(first_ns >> t->shift), last = (uint32_t)(moment_ns >> t->shift);
	uint64_t live;

	if (!t->used)
		return false;
	if (last >= t->used)
		last = t->used - 1;
	live = usual(t, first, last);
	for (uint32_t i = first; i + WORK_PERIODS <= last + 1; i++) {
		uint64_t acquired = 0, released = 0;

		if (t->periods[i].last < live / LOADED_PART)
			continue;
		for (uint32_t k = i; k < i + WORK_PERIODS; k++) {
			acquired += t->periods[k].acquired;
			released += t->periods[k].released;
		}
		if (!acquired || (double)released < WORK_SHARE * (double)acquired)
			continue;
		*out = (uint64_t)i << t->shift;
		*out = num_most(*out, first_ns);
		return true;
	}
	return false;
}

static void marked(
    struct phases *p, const struct timeline *t, const struct requests *r, uint64_t moment_ns)
{
	for (uint32_t i = 0; i < r->phase_count; i++) {
		const struct marked_phase *m = &r->phases[i];

		add(p, t, m->name ? m->name : "unnamed", m->start_ns,
		    m->end_ns ? m->end_ns : moment_ns);
		if (p->count)
			p->list[p->count - 1].marked = true;
	}
}

void phases_read(const struct timeline *t, uint64_t first_ns, uint64_t moment_ns,
    const struct requests *r, bool attached, struct phases *out)
{
	uint64_t work = 0, request = r && r->begun ? r->first_start_ns : 0, served;
	bool works = work_began(t, first_ns, moment_ns, &work);

	memset(out, 0, sizeof(*out));
	if (r && r->phase_count) {
		marked(out, t, r, moment_ns);
		return;
	}
	if (attached || (!works && !request))
		return;
	/* If requests started within the periods that prove the work, there was no warm-up. */
	if (!works || (request && request < work + ((uint64_t)WORK_PERIODS << t->shift)))
		work = request;
	add(out, t, "loading", first_ns, work);
	served = work;
	if (request) {
		add(out, t, "warm-up", work, request);
		served =
		    r->first_end_ns && r->first_end_ns < moment_ns ? r->first_end_ns : moment_ns;
		add(out, t, "first-request", request, served);
	}
	add(out, t, "serving", served, moment_ns);
}
