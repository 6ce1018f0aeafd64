/*
 * cost.c - measures an allocation with its release, in ns: `cost DRIVER DEPTH`; or the launch of a
 * kernel, or a copy: `cost DRIVER DEPTH launch`, `... copy`. Prints a line for each of 20 rounds.
 * Exit status 3: the function that launches or copies is not the driver's own.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda/cuda_abi.h"

static gpu_result (*alloc)(gpu_ptr *, size_t);
static gpu_result (*release)(gpu_ptr);
static gpu_result (*launch)(gpu_object, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
    unsigned, gpu_stream, void **, void **);
static gpu_result (*copy)(gpu_ptr, gpu_ptr, size_t, gpu_stream);

static void pair(void)
{
	gpu_ptr p;

	alloc(&p, 4096);
	release(p);
}

static void launch_one(void)
{
	launch(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

static void copy_one(void)
{
	copy(4096, 8192, 512, NULL);
}

static void (*work)(void) = pair;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) void rounds(void)
{
	enum { COUNT = 100000 };

	for (int round = 0; round < 20; round++) {
		double began = now();

		for (int i = 0; i < COUNT; i++)
			work();
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

/* Says whether the function lies in the driver. */
static int is_of(void *driver, const void *function)
{
	struct link_map *map;
	Dl_info found;

	return !dlinfo(driver, RTLD_DI_LINKMAP, &map) && dladdr(function, &found) &&
	       (uintptr_t)found.dli_fbase == map->l_addr;
}

int main(int argc, char **argv)
{
	void *driver = dlopen(argv[1], RTLD_NOW), *called = NULL;
	gpu_result (*set)(gpu_context);

	if (!driver || argc < 3)
		return 1;
	if (argc > 3) {
		int copies = !strcmp(argv[3], "copy");

		called = dlsym(driver, copies ? "cuMemcpyAsync" : "cuLaunchKernel");
		work = copies ? copy_one : launch_one;
		*(void **)(copies ? (void *)&copy : (void *)&launch) = called;
		if (!called || !is_of(driver, called))
			return 3;
	}
	set = (gpu_result(*)(gpu_context))dlsym(driver, "cuCtxSetCurrent");
	alloc = (gpu_result(*)(gpu_ptr *, size_t))dlsym(driver, "cuMemAlloc_v2");
	release = (gpu_result(*)(gpu_ptr))dlsym(driver, "cuMemFree_v2");
	set((gpu_context)driver);
	return deeper(atoi(argv[2])) < 0;
}
