/*
 * gpu.h - what the programs of this folder share: built against NVIDIA's own headers, linked with
 * its runtime; the driver's functions are looked up, as frameworks do.
 */
#ifndef TESTS_GPU_GPU_H
#define TESTS_GPU_GPU_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* Ends the program where going on makes no sense. 77: the runtime is newer than the driver. */
#define MUST(call)                                                                                 \
	do {                                                                                       \
		int result_ = (int)(call);                                                         \
                                                                                                   \
		if (result_) {                                                                     \
			fprintf(stderr, "%s is %d\n", #call, result_);                             \
			exit(result_ == cudaErrorInsufficientDriver ? 77 : 3);                     \
		}                                                                                  \
	} while (0)

/* A function of the driver's, by the name that it has in libcuda. */
static inline void *driver(const char *name)
{
	static void *library;
	void *found;

	if (!library)
		library = dlopen("libcuda.so.1", RTLD_NOW);
	found = library ? dlsym(library, name) : NULL;
	if (!found) {
		fprintf(stderr, "the driver has no %s\n", name);
		exit(3);
	}
	return found;
}
#define DRIVER(name) ((__typeof__(&name))driver(#name))

/* What is free on the device when all that was asked for is done. */
static inline size_t available(void)
{
	size_t left, total;

	MUST(cudaDeviceSynchronize());
	MUST(cudaMemGetInfo(&left, &total));
	return left;
}

#endif
