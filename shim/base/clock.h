/*
 * clock.h - ticks: the CPU's counter where the kernel trusts it as a clock, otherwise
 * CLOCK_MONOTONIC. A tick is 4 to 8 ns, so that differences stay short on disk.
 */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct clock {
	uint32_t kind; /* enum trace_clock; 0 before clock_init() */
	uint32_t shift; /* a tick is the counter shifted right by this */
	uint64_t hz; /* ticks a second; 0: not known without measuring */
	uint64_t ticks_100ms; /* within a factor of two */
};
extern struct clock tick_clock __attribute__((visibility("hidden")));

/* One moment on both clocks. */
struct clock_pair {
	uint64_t ticks, mono_ns;
};

void clock_init(void);

/* Freeze before the host enters seccomp's strict mode, in which reading a counter is fatal: from
 * then on ticks only count up. Unfreeze if it did not enter. */
void clock_freeze(bool frozen);
uint64_t clock_monotonic_ticks(void);

/* Read both clocks, for a chunk's start and the like. Takes one microsecond, a few on a busy
 * machine. */
struct clock_pair clock_now(void);

/* Like clock_now(), with the given clocks: of a few readings of `mono_ns`, take the one that the
 * fewest ticks enclose, or the first that at most `enough` ticks enclose. The error is at most half
 * of them. */
struct clock_pair clock_bracket(
    uint64_t (*ticks)(void), uint64_t (*mono_ns)(void), uint64_t enough);

static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
	if (__builtin_expect(tick_clock.kind == 1, 1))
		return __builtin_ia32_rdtsc() >> tick_clock.shift;
#elif defined(__aarch64__)
	if (__builtin_expect(tick_clock.kind == 2, 1)) {
		uint64_t now;

		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
		return now >> tick_clock.shift;
	}
#endif
	return clock_monotonic_ticks();
}

#endif
