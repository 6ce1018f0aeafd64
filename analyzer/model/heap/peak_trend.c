#include "model/heap/peak_trend.h"

#include "util/num.h"
#include "util/tuned.h"

TUNED(unsigned, TREND_CHANCE, 12u,
    "a trend adds half of its rise in half of the time; a sixth of that is a sawtooth's chance");

#define FIRST_STRIDE 4096u

/* Halve the marks: each then stands for twice as much work. */
static void halve(struct peak_trend *r)
{
	for (uint32_t i = 0; i < PEAK_TREND_MARKS / 2; i++)
		r->marks[i] = r->marks[2 * i + 1];
	r->used = PEAK_TREND_MARKS / 2;
	r->stride *= 2;
}

void peak_trend_note(struct peak_trend *r, uint64_t acquired, uint64_t peak)
{
	if (!r->stride)
		r->stride = FIRST_STRIDE;
	/* The stride is a power of two, since each acquisition asks. */
	while (acquired >> __builtin_ctzll(r->stride) > r->used && r->stride < UINT64_MAX / 2) {
		if (r->used == PEAK_TREND_MARKS)
			halve(r);
		else
			r->marks[r->used++] = peak;
	}
}

uint64_t peak_trend_of_marks(const uint64_t marks[TREND_MARKS], uint64_t rise)
{
	const uint64_t steps = TREND_MARKS - 1;
	uint64_t added = 0, largest = 0;

	for (uint32_t i = 1; i < TREND_MARKS; i++) {
		uint64_t step = marks[i] > marks[i - 1] ? marks[i] - marks[i - 1] : 0;

		added += step;
		largest = num_most(largest, step);
	}
	added = (added - largest) / (steps - 1) * steps;
	return added < rise / TREND_CHANCE ? 0 : 2 * added;
}

uint64_t peak_trend_added(const struct peak_trend *r, uint64_t peak)
{
	uint64_t marks[TREND_MARKS];

	if (r->used < 2 * TREND_MARKS)
		return 0;
	for (uint32_t i = 0; i < TREND_MARKS; i++)
		marks[i] = r->marks[(r->used - 1) / 2 + (r->used / 2 * i) / (TREND_MARKS - 1)];
	return peak_trend_of_marks(marks, peak);
}
