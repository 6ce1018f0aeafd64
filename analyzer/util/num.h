/*
 * num.h - arithmetic of unsigned numbers that does not wrap.
 */
#ifndef ANALYZER_UTIL_NUM_H
#define ANALYZER_UTIL_NUM_H

#include <stdbool.h>
#include <stdint.h>

/* from - by, at least 0. */
static inline uint64_t num_less(uint64_t from, uint64_t by)
{
	return from > by ? from - by : 0;
}

/* a + b, at most UINT64_MAX. */
static inline uint64_t num_sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static inline uint64_t num_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* True: it differs from `other` by at most other / part. */
static inline bool num_about(uint64_t value, uint64_t other, uint64_t part)
{
	return value >= other - other / part && value <= num_sum(other, other / part);
}

/* Seconds as nanoseconds, at least 0 and at most UINT64_MAX. */
static inline uint64_t num_ns(double seconds)
{
	double ns = seconds * 1e9;

	return !(ns > 0) ? 0 : ns < 0x1p64 ? (uint64_t)ns : UINT64_MAX;
}

static inline uint64_t num_most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

#endif
