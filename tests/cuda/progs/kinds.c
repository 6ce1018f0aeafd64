/*
 * kinds.c - memory other than plain blocks, and when the driver is queried about it: `kinds CASE`.
 * Prints the bytes that the stand-in driver has in use after each step that matters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/cuda_abi.h"

#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	extern gpu_result symbol parameters;
#include "cuda/cuda_api.def"
#undef CUDA_API
extern gpu_result cuCtxSetCurrent(gpu_context), cuCtxGetCurrent(gpu_context *);
extern int stand_violations(void), stand_asked(void);
extern uint64_t stand_used(void);

#define CHECK(c)                                                                                   \
	do {                                                                                       \
		if (!(c)) {                                                                        \
			fprintf(stderr, "line %d: %s\n", __LINE__, #c);                            \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)
#define MIB (1ull << 20)
#define STREAM ((gpu_stream)(uintptr_t)0x55)
#define GRAPH ((gpu_graph)(uintptr_t)0x99)

static void begin(void)
{
	gpu_context context;

	CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context));
}

/* Prints the bytes in use; the release of an unknown address marks the moment in the trace. */
static void used(void)
{
	CHECK(cuMemFree_v2(77) == GPU_ERROR_INVALID_VALUE);
	printf("%llu\n", (unsigned long long)stand_used());
}

static gpu_handle create(size_t size)
{
	struct gpu_alloc_prop prop = {.type = 1, .location = {GPU_LOCATION_DEVICE, 0}};
	gpu_handle handle;

	CHECK(!cuMemCreate(&handle, size, &prop, 0));
	return handle;
}

/* a handle's memory lives as long as a reference or a mapping */
static void handles(void)
{
	gpu_ptr va;
	gpu_handle first, second, again;

	begin();
	CHECK(!cuMemAddressReserve(&va, 64 * MIB, 0, 0, 0));
	first = create(2 * MIB);
	CHECK(!cuMemMap(va, 2 * MIB, 0, first, 0));
	used();
	CHECK(!cuMemRelease(first)); /* the mapping holds it */
	used();
	CHECK(!cuMemUnmap(va, 2 * MIB));
	used();
	second = create(4 * MIB);
	CHECK(!cuMemMap(va, 4 * MIB, 0, second, 0) && !cuMemUnmap(va, 4 * MIB));
	used(); /* the reference holds it */
	CHECK(!cuMemRelease(second));
	used();
	/* one call unmaps several mappings of several handles; a reference from an address */
	first = create(2 * MIB);
	second = create(2 * MIB);
	CHECK(
	    !cuMemMap(va, 2 * MIB, 0, first, 0) && !cuMemMap(va + 2 * MIB, 2 * MIB, 0, second, 0));
	CHECK(!cuMemMap(va + 4 * MIB, 2 * MIB, 0, first, 0));
	CHECK(!cuMemRelease(first) && !cuMemRelease(second));
	CHECK(!cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(va + 2 * MIB)));
	CHECK(again == second);
	used();
	CHECK(!cuMemUnmap(va, 6 * MIB));
	used();
	CHECK(!cuMemRelease(again));
	used();
	CHECK(cuMemRelease(again) == GPU_ERROR_INVALID_VALUE);
	used();
}

/* memory of other processes, and views of memory that is counted already */
static void foreign(void)
{
	struct gpu_external_desc external = {.type = 1, .size = 16 * MIB};
	struct gpu_external_buffer buffer = {.size = 8 * MIB};
	struct gpu_external_mipmap pyramid = {.array = {64, 64, 0, 0x20, 1, 0}, .levels = 2};
	struct gpu_multicast_prop prop = {.devices = 2, .size = 32 * MIB};
	struct gpu_pool_export data;
	struct gpu_ipc_handle ipc;
	gpu_handle multicast, imported, own;
	gpu_object memory;
	gpu_array array;
	gpu_ptr opened, mapped, pooled, va;

	begin();
	for (unsigned i = 0; i < sizeof(ipc.reserved); i++)
		ipc.reserved[i] = (uint8_t)(i + 1);
	memset(&data, 0, sizeof(data));
	own = create(2 * MIB);
	CHECK(!cuMemAddressReserve(&va, 64 * MIB, 0, 0, 0));
	CHECK(!cuIpcOpenMemHandle_v2(&opened, ipc, 1));
	CHECK(!cuMemImportFromShareableHandle(&imported, NULL, 1));
	CHECK(!cuMemMap(va, 2 * MIB, 0, imported, 0));
	CHECK(!cuMemPoolImportPointer(&pooled, (gpu_pool)(uintptr_t)0x9002, &data));
	CHECK(!cuImportExternalMemory(&memory, &external));
	CHECK(!cuExternalMemoryGetMappedBuffer(&mapped, memory, &buffer));
	CHECK(!cuExternalMemoryGetMappedMipmappedArray(&array, memory, &pyramid));
	CHECK(!cuMulticastCreate(&multicast, &prop));
	CHECK(!cuMulticastBindMem(multicast, 0, own, 0, 2 * MIB, 0));
	CHECK(cuMulticastBindMem(multicast, 0, own, 0, 0, 0) == GPU_ERROR_OUT_OF_MEMORY);
	CHECK(!cuMemMap(va + 2 * MIB, 32 * MIB, 0, multicast, 0));
	used();
	CHECK(!cuMemUnmap(va, 34 * MIB) && !cuMemRelease(multicast) && !cuMemRelease(imported));
	CHECK(!cuMipmappedArrayDestroy(array) && !cuMemFree_v2(mapped));
	CHECK(!cuDestroyExternalMemory(memory) && !cuMemFree_v2(pooled));
	CHECK(!cuIpcCloseMemHandle(opened) && !cuMemRelease(own));
	used();
}

static void arrays(void)
{
	struct gpu_array3d_desc desc = {64, 32, 0, 0x20, 1, 0};
	gpu_array array;

	begin();
	CHECK(!cuMipmappedArrayCreate(&array, &desc, 3)); /* 64x32, 32x16, 16x8 floats */
	used();
	CHECK(!cuMipmappedArrayDestroy(array));
	used();
}

/* graphs: a node's memory is allocated when the graph runs */
static void graphs(void)
{
	struct gpu_node_alloc node = {
	    .pool = {.location = {GPU_LOCATION_DEVICE, 0}}, .size = 5 * MIB};
	struct gpu_node_params params = {.type = GPU_NODE_MEM_ALLOC}, release;
	struct gpu_node_params kernel = {.type = 0};
	gpu_graph captured;
	gpu_node added;
	gpu_ptr p, q;

	begin();
	CHECK(!cuGraphAddMemAllocNode(&added, GRAPH, NULL, 0, &node) && node.address);
	params.of.alloc = node;
	params.of.alloc.size = 6 * MIB;
	CHECK(!cuGraphAddNode_v2(&added, GRAPH, NULL, NULL, 0, &params));
	memset(&release, 0, sizeof(release));
	release.type = GPU_NODE_MEM_FREE;
	release.of.free = params.of.alloc.address;
	CHECK(!cuGraphAddNode_v2(&added, GRAPH, NULL, NULL, 0, &release));
	CHECK(!cuGraphAddNode_v2(&added, GRAPH, NULL, NULL, 0, &kernel));
	CHECK(!cuGraphAddMemFreeNode(&added, GRAPH, NULL, 0, node.address));
	node.size = 0;
	CHECK(cuGraphAddMemAllocNode(&added, GRAPH, NULL, 0, &node) == GPU_ERROR_INVALID_VALUE);
	CHECK(!cuStreamBeginCapture_v2(STREAM, 0));
	CHECK(!cuMemAllocAsync(&p, 7 * MIB, STREAM) && !cuMemFreeAsync(p, STREAM));
	CHECK(!cuStreamEndCapture(STREAM, &captured));
	CHECK(!cuMemAllocAsync(&q, 8 * MIB, STREAM)); /* after the capture: allocates at once */
	CHECK(!cuGraphLaunch((gpu_object)GRAPH, STREAM));
	CHECK(!cuGraphDestroy(GRAPH));
}

/* contexts of two devices, and other calls that use memory as a side effect */
static void contexts(void)
{
	struct gpu_alloc_prop prop = {.type = 1, .location = {GPU_LOCATION_DEVICE, 1}};
	gpu_context first, again, second, other, made;
	gpu_handle handle;
	gpu_module module;
	gpu_object library;

	CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&first, 0));
	CHECK(!cuCtxGetCurrent(&again) && !again); /* it was put back */
	CHECK(!cuCtxSetCurrent(first));
	CHECK(!cuModuleLoadData(&module, "image"));
	CHECK(!cuLibraryLoadData(&library, "code", NULL, NULL, 0, NULL, NULL, 0));
	CHECK(!cuCtxSetLimit(2, 8 * MIB));
	CHECK(!cuModuleUnload(module));
	CHECK(!cuCtxCreate_v2(&second, 0, 0) && !cuCtxDestroy_v2(second));
	CHECK(!cuDevicePrimaryCtxRetain(&other, 1)); /* with a context of device 0 */
	CHECK(!cuCtxGetCurrent(&again) && again == first);
	CHECK(!cuMemCreate(&handle, 2 * MIB, &prop, 0)); /* of device 1 */
	CHECK(cuMemCreate(&handle, 1ull << 40, &prop, 0) == GPU_ERROR_OUT_OF_MEMORY);
	CHECK(!cuCtxCreate_v2(&made, 0, 1));
	CHECK(!cuCtxDestroy_v2(made) && !cuDevicePrimaryCtxRelease_v2(1));
	CHECK(!cuDevicePrimaryCtxRetain(&other, 1)); /* creates it anew */
	CHECK(!cuDevicePrimaryCtxRetain(&other, 1)); /* exists already */
}

/* for a second, as fast as can be */
static void samples(void)
{
	time_t now = time(NULL);
	int before;
	gpu_ptr p;

	begin();
	before = stand_asked();
	while (time(NULL) < now + 2) {
		CHECK(!cuMemAlloc_v2(&p, 4096) && !cuMemFree_v2(p));
		usleep(1000);
	}
	printf("%d\n", stand_asked() - before);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {{"handles", handles}, {"foreign", foreign}, {"arrays", arrays}, {"graphs", graphs},
    {"contexts", contexts}, {"samples", samples}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run();
			return stand_violations() ? 4 : 0;
		}
	return 2;
}
