/*
 * cost.c - what one allocation and its release cost, in ns: `cost DRIVER DEPTH`. Prints a line for
 * each of 20 rounds.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda_abi.h"

static gpu_result (*alloc)(gpu_ptr *, size_t);
static gpu_result (*release)(gpu_ptr);

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) void rounds(void)
{
	enum { COUNT = 100000 };
	gpu_ptr p;

	for (int round = 0; round < 20; round++) {
		double began = now();

		for (int i = 0; i < COUNT; i++) {
			alloc(&p, 4096);
			release(p);
		}
		printf("%.1f\n", (now() - began) / COUNT);
	}
}

static __attribute__((noinline)) int deeper(int depth)
{
	if (depth)
		return deeper(depth - 1) + 1;
	rounds();
	return 0;
}

int main(int argc, char **argv)
{
	void *driver = dlopen(argv[1], RTLD_NOW);
	gpu_result (*set)(gpu_context);

	if (!driver)
		return 1;
	set = (gpu_result(*)(gpu_context))dlsym(driver, "cuCtxSetCurrent");
	alloc = (gpu_result(*)(gpu_ptr *, size_t))dlsym(driver, "cuMemAlloc_v2");
	release = (gpu_result(*)(gpu_ptr))dlsym(driver, "cuMemFree_v2");
	set((gpu_context)driver);
	return deeper(atoi(argv[2])) < 0;
}
