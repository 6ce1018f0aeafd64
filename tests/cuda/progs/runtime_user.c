/*
 * runtime_user.c - allocates through a CUDA runtime: a program linked with a stand-in (shared or
 * static) or, with PLUGIN, a library to be loaded. OFFSET tells two of them apart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda_abi.h"

#ifdef INSIDE
#define EXPORT static __attribute__((unused))
#include "../stand/runtime.c"
#else
extern gpu_result cudaMalloc(void **, size_t), cudaFree(void *), cudaMallocHost(void **, size_t);
extern gpu_result cudaFreeHost(void *), cudaMallocManaged(void **, size_t, unsigned);
extern gpu_result cudaMallocAsync(void **, size_t, gpu_stream);
extern gpu_result cudaMallocAsync_ptsz(void **, size_t, gpu_stream);
extern gpu_result cudaFreeAsync(void *, gpu_stream);
extern gpu_result cudaGetDriverEntryPoint(const char *, void **, unsigned long long, int *);
extern gpu_result cudaGetDriverEntryPointByVersion(
    const char *, void **, unsigned, unsigned long long, int *);
extern gpu_result cudaDeviceReset(void);
extern int runtime_version(void), runtime_calls(void);
#endif

#ifndef OFFSET
#define OFFSET 0
#endif

#define CHECK(c)                                                                                   \
	do {                                                                                       \
		if (!(c)) {                                                                        \
			fprintf(stderr, "line %d: %s\n", __LINE__, #c);                            \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

__attribute__((visibility("default"))) int use(void);
__attribute__((visibility("default"))) int use(void)
{
	void *a, *b, *host, *managed, *async, *twin, *zero;
	gpu_result (*alloc)(gpu_ptr *, size_t);
	gpu_ptr p;

	CHECK(!cudaMalloc(&a, 1001 + OFFSET) && !cudaMalloc(&b, 2002 + OFFSET) && !cudaFree(a));
	CHECK(!cudaMalloc(&zero, 0) && !zero && !cudaFree(NULL));
	CHECK(!cudaMallocHost(&host, 3003 + OFFSET) && !cudaFreeHost(host));
	CHECK(!cudaMallocManaged(&managed, 4004 + OFFSET, 1));
	CHECK(!cudaMallocAsync(&async, 5005 + OFFSET, NULL) && !cudaFreeAsync(async, NULL));
	CHECK(!cudaMallocAsync_ptsz(&twin, 6006 + OFFSET, NULL));
	CHECK(cudaMalloc(&a, (size_t)1 << 40) == GPU_ERROR_OUT_OF_MEMORY);
	CHECK(cudaMalloc(NULL, 8008) == GPU_ERROR_INVALID_VALUE);
	CHECK(!cudaGetDriverEntryPoint("cuMemAlloc", (void **)&alloc, 0, NULL));
	CHECK(!alloc(&p, 7007 + OFFSET));
	CHECK(!cudaGetDriverEntryPointByVersion("cuMemAlloc", (void **)&alloc, 12000, 0, NULL));
	CHECK(!alloc(&p, 7017 + OFFSET));
	CHECK(runtime_calls() == 5); /* each of them came to this runtime */
	return runtime_version();
}

#ifndef PLUGIN
int main(void)
{
	printf("runtime %d\n", use());
	CHECK(!cudaDeviceReset());
	return 0;
}
#endif
