/*
 * clock.h - converts a file's ticks to nanoseconds since the trace's start, by the pairs of ticks
 * and time that the recorder wrote. The result never falls, whatever the pairs say.
 */
#ifndef ANALYZER_TRACE_CLOCK_H
#define ANALYZER_TRACE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "util/vec.h"

#define CLOCK_RATE_SHIFT 40u
struct clock_pair {
	uint64_t ticks, ns; /* ns: CLOCK_MONOTONIC at first, since the start after clock_finish() */
	uint64_t rate; /* ns a tick, times 2^CLOCK_RATE_SHIFT, from here to the next pair */
};

struct clock {
	VEC(struct clock_pair) pairs;
	size_t at; /* the pair of the last lookup */
	uint64_t back_rate; /* before the first pair */
	/* the pair at `at`: its start, its rate, and the ticks it covers (0 before a lookup) */
	uint64_t from, from_ns, rate, span;
};

/* Add a pair. 0 or -ENOMEM. */
int clock_add(struct clock *clock, uint64_t ticks, uint64_t mono_ns);
/* Call once, after the last clock_add(). Drops pairs that would make time run backwards. */
void clock_finish(struct clock *clock, uint64_t start_mono_ns, uint64_t ticks_hz);
uint64_t clock_search(struct clock *clock, uint64_t ticks);
/* Convert ticks; at most INT64_MAX. Fast when called in time order. */
static inline uint64_t clock_ns(struct clock *clock, uint64_t ticks)
{
	uint64_t since = ticks - clock->from;
	__extension__ unsigned __int128 ns;

	if (__builtin_expect(since >= clock->span, 0))
		return clock_search(clock, ticks);
	ns = (__extension__(unsigned __int128) since) * clock->rate >> CLOCK_RATE_SHIFT;
	return (uint64_t)ns + clock->from_ns;
}
/* Ticks that pass in `ns` at the average rate, at least 1. */
uint64_t clock_ticks_of(const struct clock *clock, uint64_t ns);
void clock_fini(struct clock *clock);

#endif
