/*
 * clock_ns.h - a clock's time as nanoseconds.
 */
#ifndef ANALYZER_UTIL_CLOCK_NS_H
#define ANALYZER_UTIL_CLOCK_NS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
