/*
 * clock.c - chooses the clock of clock.h once.
 */
#include "base/clock.h"

#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/sys.h"
#include "whyoom/trace.h"

struct clock tick_clock __attribute__((visibility("hidden")));

static uint64_t clock_monotonic_ns(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC, &now); /* through the vDSO: no system call */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct clock_pair frozen; /* ticks: 0 while the clock runs */
static uint32_t frozen_kind;

uint64_t clock_monotonic_ticks(void)
{
	if (__atomic_load_n(&frozen.ticks, __ATOMIC_RELAXED))
		return __atomic_add_fetch(&frozen.ticks, 1, __ATOMIC_RELAXED);
	return clock_monotonic_ns() >> 2;
}

void clock_freeze(bool on)
{
	struct clock_pair now = clock_now();

	if (on) {
		frozen_kind = tick_clock.kind;
		frozen.mono_ns = now.mono_ns;
		__atomic_store_n(&frozen.ticks, now.ticks, __ATOMIC_RELEASE);
		__atomic_store_n(&tick_clock.kind, 0, __ATOMIC_RELEASE);
	} else {
		__atomic_store_n(&tick_clock.kind, frozen_kind, __ATOMIC_RELEASE);
		__atomic_store_n(&frozen.ticks, 0, __ATOMIC_RELEASE);
	}
}

/* Does the kernel itself use that counter as its clock? It stops doing so when it finds the counter
 * unsteady. An emulated CPU's counter may be the wall clock, which steps (qemu-user's is). */
static bool counter_trusted(const char *counter)
{
	static const char file[] =
	    "/sys/devices/system/clocksource/clocksource0/current_clocksource";
	size_t length = strlen(counter);
	char name[32];

	return sys_read_file(file, name, sizeof(name)) >= (long)length &&
	       !memcmp(name, counter, length);
}

#if defined(__x86_64__)
static uint64_t counter_hz(void)
{
	unsigned a, b, c, d;

	if (__get_cpuid_max(0, NULL) >= 0x15) {
		__cpuid_count(0x15, 0, a, b, c, d);
		if (a && b && c)
			return (uint64_t)c * b / a;
	}
	return 0;
}
#endif

void clock_init(void)
{
	uint64_t hz = 0;

	tick_clock = (struct clock){.kind = TRACE_CLOCK_MONOTONIC, .shift = 2, .hz = 250000000};
#if defined(__x86_64__)
	if (counter_trusted("tsc")) {
		hz = counter_hz();
		tick_clock = (struct clock){.kind = TRACE_CLOCK_TSC, .shift = 4};
	}
#elif defined(__aarch64__)
	if (counter_trusted("arch_sys_counter")) {
		__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
		tick_clock = (struct clock){.kind = TRACE_CLOCK_CNTVCT};
	}
#endif
	if (hz) {
		tick_clock.shift = 0;
		while (hz >> tick_clock.shift > 250000000)
			tick_clock.shift++;
		tick_clock.hz = hz >> tick_clock.shift;
	}
	tick_clock.ticks_100ms = tick_clock.hz ? tick_clock.hz / 10 : 15000000;
}

/* The thread may lose the CPU for milliseconds between two readings, and all events of a chunk
 * would be late. Reading ticks before and after reveals that. */
struct clock_pair clock_bracket(uint64_t (*ticks)(void), uint64_t (*mono_ns)(void), uint64_t enough)
{
	enum { TRIES = 6 };
	struct clock_pair best = {0};
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < TRIES && width > enough; i++) {
		uint64_t before = ticks(), ns = mono_ns(), after = ticks();

		if (after - before < width) { /* readings that went backwards enclose nothing */
			width = after - before;
			best = (struct clock_pair){.ticks = before + width / 2, .mono_ns = ns};
		}
	}
	return best;
}

static uint64_t read_ticks(void)
{
	return clock_ticks();
}

/* If a seccomp filter forbids the system call, the vDSO still works. */
static uint64_t read_mono_ns(void)
{
	uint64_t ns = sys_clock_ns(CLOCK_MONOTONIC);

	return ns ? ns : clock_monotonic_ns();
}

struct clock_pair clock_now(void)
{
	struct clock_pair now = {.mono_ns = 0};

	if (__atomic_load_n(&frozen.ticks, __ATOMIC_RELAXED))
		return (struct clock_pair){clock_monotonic_ticks(), frozen.mono_ns};
	if (tick_clock.kind != TRACE_CLOCK_MONOTONIC)
		return clock_bracket(read_ticks, read_mono_ns, tick_clock.ticks_100ms / 100000);
	now.mono_ns = read_mono_ns();
	now.ticks = now.mono_ns >> tick_clock.shift;
	return now;
}
