/*
 * runtime.c - a stand-in for a CUDA runtime, built as libcudart.so.11.0, .12 and .13, and into
 * programs. It finds the driver as the real ones do: dlopen("libcuda.so.1"), dlsym of
 * cuGetProcAddress (RUNTIME < 12000) or cuGetProcAddress_v2, which it calls for itself again, and
 * then for everything else, with status always NULL. With STAND_PAST=1 it calls the C library's
 * dlsym directly, past all wrappers.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda_abi.h"

#ifndef RUNTIME
#define RUNTIME 13000
#endif
#ifndef EXPORT
#define EXPORT __attribute__((visibility("default")))
#endif

static struct {
	gpu_result (*lookup4)(const char *, void **, int, uint64_t);
	gpu_result (*lookup5)(const char *, void **, int, uint64_t, int *);
	gpu_result (*init)(unsigned);
	gpu_result (*retain)(gpu_context *, gpu_device);
	gpu_result (*set)(gpu_context);
	gpu_result (*get)(gpu_context *);
	gpu_result (*alloc)(gpu_ptr *, size_t);
	gpu_result (*release)(gpu_ptr);
	gpu_result (*host)(void **, size_t, unsigned);
	gpu_result (*free_host)(void *);
	gpu_result (*managed)(gpu_ptr *, size_t, unsigned);
	gpu_result (*alloc_async)(gpu_ptr *, size_t, gpu_stream);
	gpu_result (*alloc_async_per_thread)(gpu_ptr *, size_t, gpu_stream);
	gpu_result (*free_async)(gpu_ptr, gpu_stream);
	gpu_result (*reset)(gpu_device);
} driver;
static int calls; /* of cudaMalloc */

#if defined(__aarch64__)
#define LIBC_VERSION "GLIBC_2.17"
#else
#define LIBC_VERSION "GLIBC_2.2.5"
#endif

static void *find(void *handle, const char *name)
{
	void *(*past)(void *, const char *) =
	    (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", LIBC_VERSION);

	return getenv("STAND_PAST") ? past(handle, name) : dlsym(handle, name);
}

static gpu_result ask(const char *name, void *out, int version, uint64_t flags)
{
	return RUNTIME < 12000 ? driver.lookup4(name, out, version, flags)
			       : driver.lookup5(name, out, version, flags, NULL);
}

static gpu_result start(void)
{
	gpu_context context = NULL;

	if (!driver.init) {
		void *handle = dlopen("libcuda.so.1", RTLD_NOW), *probe;

		if (!handle)
			return GPU_ERROR_NO_DEVICE;
		if (RUNTIME < 12000) {
			driver.lookup4 = find(handle, "cuGetProcAddress");
			if (driver.lookup4("cuGetProcAddress", (void **)&driver.lookup4, 11030, 0))
				return GPU_ERROR_NOT_INITIALIZED;
		} else {
			driver.lookup5 = find(handle, "cuGetProcAddress_v2");
			if (driver.lookup5("", &probe, 0, 0, NULL) ||
			    driver.lookup5(
				"cuGetProcAddress", (void **)&driver.lookup5, 12000, 0, NULL))
				return GPU_ERROR_NOT_INITIALIZED;
		}
		if (ask("cuDevicePrimaryCtxRetain", &driver.retain, 7000, 0) ||
		    ask("cuCtxSetCurrent", &driver.set, 4000, 0) ||
		    ask("cuCtxGetCurrent", &driver.get, 4000, 0) ||
		    ask("cuMemAlloc", &driver.alloc, 3020, 0) ||
		    ask("cuMemFree", &driver.release, 3020, 0) ||
		    ask("cuMemHostAlloc", &driver.host, 2020, 0) ||
		    ask("cuMemFreeHost", &driver.free_host, 2000, 0) ||
		    ask("cuMemAllocManaged", &driver.managed, 6000, 0) ||
		    ask("cuMemAllocAsync", &driver.alloc_async, 11020, 0) ||
		    ask("cuMemAllocAsync", &driver.alloc_async_per_thread, 11020, 2) ||
		    ask("cuMemFreeAsync", &driver.free_async, 11020, 0) ||
		    ask("cuDevicePrimaryCtxReset", &driver.reset, 7000, 0) ||
		    ask("cuInit", &driver.init, 2000, 0))
			return GPU_ERROR_NOT_INITIALIZED;
		driver.init(0);
		driver.retain(&context, 0);
	}
	driver.get(&context);
	if (!context)
		driver.set((gpu_context)(uintptr_t)0xc0de);
	return GPU_SUCCESS;
}

#define START()                                                                                    \
	gpu_result started = start();                                                              \
	if (started)                                                                               \
	return started

EXPORT gpu_result cudaMalloc(void **out, size_t size)
{
	START();
	calls++;
	if (!out)
		return GPU_ERROR_INVALID_VALUE;
	if (!size) {
		*out = NULL;
		return GPU_SUCCESS;
	}
	return driver.alloc((gpu_ptr *)out, size);
}

EXPORT gpu_result cudaFree(void *address)
{
	START();
	return address ? driver.release((gpu_ptr)(uintptr_t)address) : GPU_SUCCESS;
}

EXPORT gpu_result cudaMallocHost(void **out, size_t size)
{
	START();
	return driver.host(out, size, 0);
}

EXPORT gpu_result cudaHostAlloc(void **out, size_t size, unsigned flags)
{
	START();
	return driver.host(out, size, flags);
}

EXPORT gpu_result cudaFreeHost(void *address)
{
	START();
	return driver.free_host(address);
}

EXPORT gpu_result cudaMallocManaged(void **out, size_t size, unsigned flags)
{
	START();
	return driver.managed((gpu_ptr *)out, size, flags);
}

EXPORT gpu_result cudaMallocAsync(void **out, size_t size, gpu_stream stream)
{
	START();
	return driver.alloc_async((gpu_ptr *)out, size, stream);
}

EXPORT gpu_result cudaMallocAsync_ptsz(void **out, size_t size, gpu_stream stream)
{
	START();
	return driver.alloc_async_per_thread((gpu_ptr *)out, size, stream);
}

EXPORT gpu_result cudaFreeAsync(void *address, gpu_stream stream)
{
	START();
	return driver.free_async((gpu_ptr)(uintptr_t)address, stream);
}

EXPORT gpu_result cudaDeviceReset(void)
{
	START();
	return driver.reset(0);
}

EXPORT gpu_result cudaGetDriverEntryPoint(
    const char *name, void **out, unsigned long long flags, int *status)
{
	START();
	return ask(name, out, RUNTIME, flags);
}

EXPORT gpu_result cudaGetDriverEntryPointByVersion(
    const char *name, void **out, unsigned version, unsigned long long flags, int *status)
{
	START();
	return ask(name, out, (int)version, flags);
}

/* identifies this runtime, as a process may hold two */
EXPORT int runtime_version(void)
{
	return RUNTIME;
}

EXPORT int runtime_calls(void)
{
	return calls;
}
