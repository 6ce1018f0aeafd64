/* check.h - checks for the programs of this folder: counts, prints failures, sums up. */
#ifndef TESTS_SIMGPU_CHECK_H
#define TESTS_SIMGPU_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simgpu/api.h"

static int passed, failed;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (condition) {                                                                   \
			passed++;                                                                  \
		} else {                                                                           \
			failed++;                                                                  \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                     \
		}                                                                                  \
	} while (0)

/* Compares two numbers; prints both if they differ. */
#define SAME(a, b)                                                                                 \
	do {                                                                                       \
		unsigned long long a_ = (unsigned long long)(a), b_ = (unsigned long long)(b);     \
                                                                                                   \
		if (a_ == b_) {                                                                    \
			passed++;                                                                  \
		} else {                                                                           \
			failed++;                                                                  \
			printf("%s:%d: %s is %llu, not %llu\n", __FILE__, __LINE__, #a, a_, b_);   \
		}                                                                                  \
	} while (0)

static inline int done(void)
{
	printf("%d passed, %d failed\n", passed, failed);
	return failed > 0;
}

#define MIB (1ull << 20)
#define PAGE (2 * MIB)

/* cuInit, and the first device's primary context current. */
static inline void up(void)
{
	gpu_context context;
	gpu_device device;

	SAME(cuInit(0), 0);
	SAME(cuDeviceGet(&device, 0), 0);
	SAME(cuDevicePrimaryCtxRetain(&context, device), 0);
	SAME(cuCtxSetCurrent(context), 0);
}

static inline size_t level(void)
{
	size_t available = 0, total = 0;

	SAME(cuMemGetInfo_v2(&available, &total), 0);
	return available;
}

#endif
