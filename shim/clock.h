/*
 * clock.h - ticks: the CPU's counter where the kernel itself trusts it as a clock, otherwise
 * CLOCK_MONOTONIC. A tick is 4 to 8 ns, so that differences stay short on disk.
 */
#ifndef SHIM_CLOCK_H
#define SHIM_CLOCK_H

#include <stdint.h>

struct clock {
	uint32_t kind; /* enum trace_clock; 0 before clock_init() */
	uint32_t shift; /* a tick is the counter shifted right by this */
	uint64_t hz; /* ticks a second, as far as it is known without measuring; else 0 */
	uint64_t ticks_100ms; /* good to a factor of two */
};
extern struct clock tick_clock;

void clock_init(void);
uint64_t clock_monotonic_ticks(void);

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
