/* gpu.h - the driver's allocator, opened as a program without the toolkit does. */
#ifndef SCALE
#define SCALE 1
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef unsigned long long gpu_ptr;
typedef int (*gpu_call)();

static gpu_call gpu_free;
static gpu_call gpu_alloc, gpu_set;
static void *gpu_context;

/* Sizes in the programs are in MiB, so that the shuffled variant can scale them. */
#define MB ((size_t)SCALE << 20)

static gpu_call gpu_find(const char *name)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	gpu_call found = NULL;

	if (driver)
		*(void **)&found = dlsym(driver, name);
	if (!found)
		exit(2);
	return found;
}

static void gpu_open(void)
{
	gpu_alloc = gpu_find("cuMemAlloc_v2");
	gpu_free = gpu_find("cuMemFree_v2");
	gpu_set = gpu_find("cuCtxSetCurrent");
	if (gpu_find("cuInit")(0) || gpu_find("cuDevicePrimaryCtxRetain")(&gpu_context, 0) ||
	    gpu_set(gpu_context))
		exit(2);
}

static void gpu_check(int refused)
{
	if (!refused)
		return;
	fprintf(stderr, "out of device memory\n");
	exit(1);
}

/* A macro, so that the line that allocates is the program's own. */
#define TAKE(p, size) gpu_check(gpu_alloc(p, (size_t)(size)))
