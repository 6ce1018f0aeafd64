/*
 * malloc_held.c - see malloc_held.h. The allocator's statistics are from the failure or earlier,
 * and are updated by the blocks: overhead is proportional to their number, and freed blocks lie
 * between the others, except those with their own mapping.
 */
#include "verdict/ledger/malloc_held.h"

#include <math.h>

#include "util/num.h"
#include "util/tuned.h"

TUNED(double, SURELY_DEVIATIONS, 4.0,
    "the live bytes are estimated from a sample: four deviations off is no chance");

static uint64_t acquired_until(
    const struct model *m, const struct callsites *callsites, uint64_t measured_ns)
{
	const struct failure *f = model_failure(m);
	uint64_t until = measured_ns > callsites->moment_ns ? measured_ns : callsites->moment_ns;

	if (callsites->moment == AT_FAILURE && f)
		return f->acquired_before;
	return num_less(m->total.bytes, timeline_acquired(&m->timeline, until, m->run.last_ns + 1));
}

void malloc_held(const struct model *m, const struct callsites *callsites, uint64_t measured_ns,
    struct malloc_held *out)
{
	uint64_t moment = callsites->moment_ns, heap = callsites->live_bytes, held, over;
	bool failed = callsites->moment == AT_FAILURE;
	const struct allocator_reading *a =
	    allocator_stats_at(&m->measured.malloc, moment + (failed ? MALLOC_SAME_FAILURE_NS : 0));

	*out = (struct malloc_held){.known = false};
	/* Surely less than the live bytes: these are another allocator's statistics. */
	if (!a || (double)allocator_stats_held(a) <
		      (double)a->live_bytes - SURELY_DEVIATIONS * sqrt(fmax(a->live_variance, 0)))
		return;
	out->known = true;
	out->split = a->split;
	over = num_less(allocator_stats_beside(a), a->free);
	if (a->live_count)
		over = (uint64_t)((double)over / (double)a->live_count *
				  (double)callsites->live_blocks);
	held = a->arena + num_less(a->mmap, num_less(a->live_bytes, heap));
	out->before = num_least(a->before, held);
	heap += out->before;
	out->overhead = a->split ? over : num_less(held, heap);
	out->free = a->split ? num_less(held, heap + over) : 0;
	out->since = num_less(acquired_until(m, callsites, measured_ns), a->acquired);
}
