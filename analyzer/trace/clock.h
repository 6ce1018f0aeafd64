/*
 * clock.h - a file's ticks as nanoseconds since the trace's start, by the pairs of moments that it
 * recorded. Monotone whatever the pairs say.
 */
#ifndef ANALYZER_TRACE_CLOCK_H
#define ANALYZER_TRACE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

struct clock_pair {
	uint64_t ticks, ns; /* ns: CLOCK_MONOTONIC at first, since the start after clock_finish() */
	uint64_t rate; /* ns a tick, times 2^40, from here to the next pair */
};

struct clock {
	struct clock_pair *pairs;
	size_t count, capacity, at; /* at: where the last question was answered */
	uint64_t back_rate; /* before the first pair */
};

int clock_add(struct clock *clock, uint64_t ticks, uint64_t mono_ns); /* 0 or -ENOMEM */
/* After the last clock_add(). Pairs that would make time run backwards are left out. */
void clock_finish(struct clock *clock, uint64_t start_mono_ns, uint64_t ticks_hz);
/* Quick when questions come in order. At most INT64_MAX. */
uint64_t clock_ns(struct clock *clock, uint64_t ticks);
/* The ticks that pass in so many ns by the overall rate, at least 1. */
uint64_t clock_ticks_of(const struct clock *clock, uint64_t ns);
void clock_fini(struct clock *clock);

#endif
