/*
 * null.c - a libcuda.so.1 that does nothing, as fast as possible: measurements show our own cost.
 */
#include <stddef.h>
#include <string.h>

#include "cuda/cuda_abi.h"

#define EXPORT __attribute__((visibility("default")))

static __thread gpu_ptr next = 0x7f0000000000ull;
static __thread gpu_context current;

EXPORT gpu_result cuInit(unsigned flags)
{
	return GPU_SUCCESS;
}

EXPORT gpu_result cuCtxSetCurrent(gpu_context context)
{
	current = context;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuCtxGetCurrent(gpu_context *out)
{
	*out = current;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuCtxGetDevice(gpu_device *out)
{
	*out = 0;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuMemGetInfo_v2(size_t *available, size_t *total)
{
	*available = *total = 1 << 30;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuMemAlloc_v2(gpu_ptr *out, size_t size)
{
	*out = next += 512;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuMemFree_v2(gpu_ptr address)
{
	return GPU_SUCCESS;
}

EXPORT gpu_result cuLaunchKernel(gpu_object function, unsigned grid_x, unsigned grid_y,
    unsigned grid_z, unsigned x, unsigned y, unsigned z, unsigned shared, gpu_stream stream,
    void **arguments, void **extra)
{
	return GPU_SUCCESS;
}

EXPORT gpu_result cuMemcpyAsync(gpu_ptr to, gpu_ptr from, size_t size, gpu_stream stream)
{
	return GPU_SUCCESS;
}
