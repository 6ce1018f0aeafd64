/* late_rise.c - see late_rise.h. Times are exact to one period of the timeline. */
#include "model/heap/late_rise.h"

#include "util/tuned.h"

TUNED(unsigned, STEADY_TIMES, 2u, "a steady state lasts twice as long as the rise after it");
TUNED(unsigned, STEADY_PART, 10u,
    "requests of a steady server move its memory by up to a tenth of the rise");
TUNED(unsigned, FALLING_PART, 16u, "a smaller fall is noise of the way down before the rise");

bool late_rise_find(
    const struct timeline *t, uint64_t first_ns, uint64_t moment_ns, struct late_rise *out)
{
	uint64_t index = moment_ns >> t->shift, top = 0, base, acquired = 0;
	uint32_t last = index < t->used ? (uint32_t)index : t->used - 1, from, steady;

	for (uint32_t i = 0; i <= last; i++)
		if (t->periods[i].most > top)
			top = t->periods[i].most;
	/* Go back from the end to the last period that stayed below the middle of the rise; then
	 * forward to where memory stopped falling. */
	base = t->periods[0].least;
	for (from = last; from > 0 && t->periods[from].least > top / 2; from--)
		;
	while (from > 0 && t->periods[from - 1].most <
			       t->periods[from].most - t->periods[from].most / FALLING_PART)
		from--;
	base = t->periods[from].least;
	if (top <= base || top - base < top / 2)
		return false;
	for (steady = from; steady > first_ns >> t->shift; steady--) {
		const struct period *p = &t->periods[steady - 1];
		uint64_t margin = (top - base) / STEADY_PART;
		if (p->most > base + margin || p->least + margin < base)
			break;
	}
	if ((uint64_t)(from - steady) < (uint64_t)(last - from + 1) * STEADY_TIMES)
		return false;
	out->start_ns = (uint64_t)from << t->shift;
	out->steady_ns = (uint64_t)(from - steady) << t->shift;
	out->base_bytes = base;
	out->peak_trend_bytes = top - base;
	for (uint32_t i = steady; i < from; i++)
		acquired += t->periods[i].acquired;
	out->worked = acquired > base;
	return true;
}
