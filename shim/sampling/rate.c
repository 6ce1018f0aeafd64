/* rate.c - see rate.h. */
#include "sampling/rate.h"

#include "base/clock.h"
#include "base/options.h"
#include "sampling/control.h"

/* Refine the sample only if the rate then still fits with room to spare; otherwise it would become
 * coarser at once. */
#define CALM_NUM 3u
#define CALM_DEN 8u
/* A twentieth of the window is the shortest time that is judged. */
#define EARLY 20u

static struct {
	uint64_t bytes; /* since the window began */
	uint64_t since; /* ticks; 0: no window yet */
	unsigned shift; /* doublings of mean and exact_from */
} rate;

void rate_add(uint64_t bytes)
{
	if (options.max_rate)
		__atomic_fetch_add(&rate.bytes, bytes, __ATOMIC_RELAXED);
}

bool rate_adjust(uint64_t now, uint64_t *grown)
{
	uint64_t second = tick_clock.ticks_100ms * 10, max = options.max_rate, bytes, elapsed,
		 since;
	unsigned shift = rate.shift;

	if (!max || !second)
		return false;
	since = __atomic_load_n(&rate.since, __ATOMIC_RELAXED);
	bytes = __atomic_load_n(&rate.bytes, __ATOMIC_RELAXED);
	elapsed = now > since ? now - since : 0;
	/* The whole window's bytes may have come in a part of it. */
	if (since && (elapsed < second / EARLY || (elapsed < second && bytes <= max)))
		return false;
	if (!__atomic_compare_exchange_n(
		&rate.since, &since, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	__atomic_fetch_sub(&rate.bytes, bytes, __ATOMIC_RELAXED);
	if (!since)
		return false;
	*grown = (uint64_t)((unsigned __int128)bytes * second / elapsed);
	if (*grown > max) {
		for (uint64_t left = *grown; left > max; left /= 2)
			shift++;
	} else if (shift && *grown < max && *grown <= max / CALM_DEN * CALM_NUM) {
		shift--;
	}
	if (shift == rate.shift || !control_scale(&shift) || shift == rate.shift)
		return false;
	rate.shift = shift;
	return true;
}

void rate_forked(void)
{
	rate.bytes = rate.since = 0;
}
