/* The runtime's entry points for callers of versions 11 and 13, which are recognised by the library
 * that they are linked with. 256 MiB, a context of 16. */
#include <dlfcn.h>

#include "check.h"

int cudaGetLastError(void);
int cudaPeekAtLastError(void);
const char *cudaGetErrorString(int error);
const char *cudaGetErrorName(int error);
int cudaRuntimeGetVersion(int *version);
int cudaGetDevice(int *device);
int cudaMemcpy(void *to, const void *from, size_t n, int kind);
int cudaMemset(void *to, int value, size_t n);
int cudaDeviceSynchronize(void);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
    size_t size, int constant, int global);
int cudaGetSymbolAddress(void **out, const void *symbol);
int cudaMemcpyToSymbol(const void *symbol, const void *from, size_t n, size_t offset, int kind);
int cudaMemcpyFromSymbol(void *to, const void *symbol, size_t n, size_t offset, int kind);

static void errors(void)
{
	void *p;
	int major_free = cudaMalloc(&p, 1ull << 40);

	SAME(major_free, 2);
	CHECK(!strcmp(cudaGetErrorString(2), "out of memory"));
	CHECK(!strcmp(cudaGetErrorName(2), "cudaErrorMemoryAllocation"));
	SAME(cudaPeekAtLastError(), 2);
	SAME(cudaGetLastError(), 2);
	SAME(cudaGetLastError(), 0);
	SAME(cudaSetDevice(7), 101);
	SAME(cudaGetLastError(), 101);
}

static void memory(void)
{
	struct gpu_pitched pitched;
	struct gpu_channel channel = {32, 0, 0, 0, 2};
	gpu_array array;
	size_t available, total, pitch = 0;
	void *p = (void *)5;
	int value = 0;

	SAME(cudaMalloc(&p, 0), 0);
	CHECK(!p);
	SAME(cudaFree(NULL), 0);
	SAME(cudaMemGetInfo(&available, &total), 0);
	SAME(available, 240 * MIB);
	SAME(total, 256 * MIB);
	SAME(cudaMalloc(&p, 100), 0);
	SAME(cudaMemset(p, 3, 100), 0);
	SAME(cudaMemcpy(&value, (char *)p + 50, 4, 2), 0);
	SAME(value, 0x03030303);
	SAME(cudaFree(p), 0);
	SAME(cudaFree(p), 1);
	SAME(cudaMallocPitch(&p, &pitch, 1000, 64), 0);
	SAME(pitch, 1024);
	SAME(cudaFree(p), 0);
	SAME(cudaMalloc3D(&pitched, (struct gpu_extent){100, 10, 10}), 0);
	SAME(pitched.pitch, 512);
	SAME(cudaFree(pitched.address), 0);
	SAME(cudaMallocArray(&array, &channel, 1024, 1024, 0), 0);
	SAME(cudaFreeArray(array), 0);
	SAME(cudaMallocManaged(&p, 4096, 1), 0);
	*(int *)p = 4;
	SAME(cudaFree(p), 0);
	SAME(cudaMallocAsync(&p, 4096, NULL), 0);
	SAME(cudaFreeAsync(p, NULL), 0);
	SAME(cudaDeviceSynchronize(), 0);
	SAME(cudaMemGetInfo(&available, NULL), 0);
	SAME(available, 240 * MIB);
}

static void variables(void)
{
	static char here[64];
	char back[16] = "";
	void *address = NULL;

	SAME(cudaGetSymbolAddress(&address, here), 500);
	__cudaRegisterVar(NULL, here, here, "here", 0, sizeof(here), 0, 0);
	SAME(cudaGetSymbolAddress(&address, here), 0);
	CHECK(address);
	SAME(cudaMemcpyToSymbol(here, "hello", 6, 10, 1), 0);
	SAME(cudaMemcpyFromSymbol(back, here, 6, 10, 2), 0);
	CHECK(!strcmp(back, "hello"));
	SAME(cudaMemcpyToSymbol(here, "hello", 6, 60, 1), 1);
}

/* argv: for each major version, a library that calls the runtime like its programs */
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		int (*version)(void) = library ? dlsym(library, "version") : NULL;
		int (*properties)(void) = library ? dlsym(library, "properties") : NULL;
		int major = i == 1 ? 11 : 13;

		if (!library)
			printf("%s\n", dlerror());
		CHECK(version && version() / 1000 == major);
		CHECK(properties && properties() == 0);
	}
	errors();
	memory();
	variables();
	return done();
}
