/*
 * memory.c - takes and gives back memory of every kind, and says what the device says of it: a line
 * of JSON for each kind. `count` and `bytes` are what was asked for, `took` and `gave` by how much
 * the device's free memory fell and rose again, `space` and `api` what a recorder should call it.
 */
#define _GNU_SOURCE
#include "gpu.h"

struct kind {
	const char *name, *space, *api;
	unsigned count;
	size_t bytes; /* each */
	/* the n-th block; how it is given back */
	void (*take)(unsigned n, size_t bytes);
	void (*give)(unsigned n, size_t bytes);
};

#define MOST 1000
static void *blocks[MOST];
static cudaArray_t arrays[4];
static CUdeviceptr range;

static void take_device(unsigned n, size_t bytes)
{
	MUST(cudaMalloc(&blocks[n], bytes));
}

static void give_device(unsigned n, size_t bytes)
{
	(void)bytes;
	MUST(cudaFree(blocks[n]));
}

static void take_pool(unsigned n, size_t bytes)
{
	MUST(cudaMallocAsync(&blocks[n], bytes, NULL));
}

static void give_pool(unsigned n, size_t bytes)
{
	(void)bytes;
	MUST(cudaFreeAsync(blocks[n], NULL));
}

/* 4096 floats in a row */
static void take_array(unsigned n, size_t bytes)
{
	struct cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};

	MUST(cudaMallocArray(&arrays[n], &floats, 4096, bytes / (4096 * sizeof(float)), 0));
}

static void give_array(unsigned n, size_t bytes)
{
	(void)bytes;
	MUST(cudaFreeArray(arrays[n]));
}

/* As PyTorch's expandable segments and llama.cpp: the handle goes at once, the mapping holds. */
static void take_virtual(unsigned n, size_t bytes)
{
	CUmemAllocationProp what = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemAccessDesc access = {
	    .location = what.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;

	if (!n)
		MUST(DRIVER(cuMemAddressReserve)(&range, 16 * bytes, 0, 0, 0));
	MUST(DRIVER(cuMemCreate)(&handle, bytes, &what, 0));
	MUST(DRIVER(cuMemMap)(range + n * bytes, bytes, 0, handle, 0));
	MUST(DRIVER(cuMemSetAccess)(range + n * bytes, bytes, &access, 1));
	MUST(DRIVER(cuMemRelease)(handle));
}

static void give_virtual(unsigned n, size_t bytes)
{
	MUST(DRIVER(cuMemUnmap)(range + n * bytes, bytes));
}

static void take_managed(unsigned n, size_t bytes)
{
	MUST(cudaMallocManaged(&blocks[n], bytes, cudaMemAttachGlobal));
}

static void take_pinned(unsigned n, size_t bytes)
{
	MUST(cudaMallocHost(&blocks[n], bytes));
	memset(blocks[n], 1, bytes);
}

static void give_pinned(unsigned n, size_t bytes)
{
	(void)bytes;
	MUST(cudaFreeHost(blocks[n]));
}

static void take_registered(unsigned n, size_t bytes)
{
	MUST(posix_memalign(&blocks[n], 4096, bytes));
	MUST(cudaHostRegister(blocks[n], bytes, cudaHostRegisterDefault));
}

static void give_registered(unsigned n, size_t bytes)
{
	(void)bytes;
	MUST(cudaHostUnregister(blocks[n]));
	free(blocks[n]);
}

static const struct kind kinds[] = {
    {"device", "cuda:0", "cuMemAlloc", 8, 64 * MIB, take_device, give_device},
    {"small", "cuda:0", "cuMemAlloc", MOST, 1000, take_device, give_device},
    {"array", "cuda:0", "cuArray", 4, 64 * MIB, take_array, give_array},
    {"virtual", "cuda:0", "cuMemCreate", 8, 32 * MIB, take_virtual, give_virtual},
    {"pool", "pool:0", "cuMemAllocAsync", 8, 48 * MIB, take_pool, give_pool},
    {"managed", "managed", "cuMemAllocManaged", 4, 16 * MIB, take_managed, give_device},
    {"pinned", "pinned", "cuMemHostAlloc", 4, 32 * MIB, take_pinned, give_pinned},
    {"registered", "pinned", "cuMemHostRegister", 4, 8 * MIB, take_registered, give_registered},
};

static void show(const struct kind *k)
{
	size_t before, held, after;

	before = available();
	for (unsigned n = 0; n < k->count; n++)
		k->take(n, k->bytes);
	held = available();
	for (unsigned n = 0; n < k->count; n++)
		k->give(n, k->bytes);
	after = available();
	printf("{\"kind\": \"%s\", \"space\": \"%s\", \"api\": \"%s\", \"count\": %u, "
	       "\"bytes\": %zu, \"took\": %lld, \"gave\": %lld}\n",
	    k->name, k->space, k->api, k->count, k->count * k->bytes,
	    (long long)before - (long long)held, (long long)after - (long long)held);
}

/* The first call of the runtime makes the context. */
int main(void)
{
	size_t left, total;
	void *p;
	int result;

	MUST(cudaMemGetInfo(&left, &total));
	printf("{\"kind\": \"context\", \"took\": %zu}\n", total - left);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		show(&kinds[i]);
	result = (int)cudaMalloc(&p, 2 * total);
	printf("{\"kind\": \"refused\", \"result\": %d, \"bytes\": %zu}\n", result, 2 * total);
	return result != cudaErrorMemoryAllocation;
}
