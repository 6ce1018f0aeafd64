/*
 * objects.c - objects of the stand-in driver other than plain blocks: arrays, handles and their
 * mappings, memory of other processes, graph nodes, modules, and callbacks.
 */
#include "driver.h"

#include <pthread.h>
#include <stddef.h>

#define MAPPINGS 1024

/* arrays */
static gpu_result take_array(gpu_array *out, const struct gpu_array3d_desc *d, unsigned levels)
{
	gpu_ptr p = 0;
	gpu_result result = stand_enter();
	size_t bytes = 0;

	for (unsigned i = 0; !result && i < levels; i++)
		bytes += (d->width >> i) * (d->height >> i) * 4;
	if (!result)
		result = stand_take((uintptr_t)out < 4096 ? NULL : &p, bytes, 'd', 0);

	if (!result)
		*out = (gpu_array)(uintptr_t)p;
	return result;
}

EXPORT gpu_result cuArrayCreate_v2(gpu_array *out, const struct gpu_array_desc *d)
{
	struct gpu_array3d_desc desc = {0};
	gpu_result result = stand_enter();

	if (result)
		return result;
	desc.width = d->width;
	desc.height = d->height;
	return take_array(out, &desc, 1);
}

EXPORT gpu_result cuArrayDestroy(gpu_array array)
{
	return stand_give((uintptr_t)array);
}

EXPORT gpu_result cuMipmappedArrayCreate(
    gpu_array *out, const struct gpu_array3d_desc *d, unsigned levels)
{
	return take_array(out, d, levels);
}

EXPORT gpu_result cuMipmappedArrayDestroy(gpu_array array)
{
	return stand_give((uintptr_t)array);
}

/* virtual memory */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	gpu_ptr address;
	size_t size;
	gpu_handle handle;
} mappings[MAPPINGS];

EXPORT gpu_result cuMemAddressReserve(
    gpu_ptr *out, size_t size, size_t align, gpu_ptr hint, unsigned long long flags)
{
	return stand_take(out, size, 'v', 0);
}

EXPORT gpu_result cuMemAddressFree(gpu_ptr address, size_t size)
{
	return stand_give(address);
}

EXPORT gpu_result cuMemCreate(
    gpu_handle *out, size_t size, const struct gpu_alloc_prop *prop, unsigned long long flags)
{
	if (!stand_ready())
		return GPU_ERROR_NOT_INITIALIZED;
	if (!prop)
		return GPU_ERROR_INVALID_VALUE;
	if (prop->location.type != GPU_LOCATION_DEVICE)
		return GPU_ERROR_NOT_SUPPORTED;
	return stand_take_handle(out, size, 'h');
}

EXPORT gpu_result cuMemRelease(gpu_handle handle)
{
	return stand_refer(handle, -1, 0);
}

EXPORT gpu_result cuMemRetainAllocationHandle(gpu_handle *out, void *address)
{
	gpu_handle found = 0;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAPPINGS; i++)
		if (mappings[i].handle &&
		    (uintptr_t)address - mappings[i].address < mappings[i].size)
			found = mappings[i].handle;
	pthread_mutex_unlock(&lock);
	if (!found)
		return GPU_ERROR_INVALID_VALUE;
	*out = found;
	return stand_refer(found, 1, 0);
}

EXPORT gpu_result cuMemMap(
    gpu_ptr address, size_t size, size_t offset, gpu_handle handle, unsigned long long flags)
{
	gpu_result result = stand_refer(handle, 0, 1);

	pthread_mutex_lock(&lock);
	for (int i = 0; !result && i < MAPPINGS; i++)
		if (!mappings[i].handle) {
			mappings[i].address = address;
			mappings[i].size = size;
			mappings[i].handle = handle;
			break;
		}
	pthread_mutex_unlock(&lock);
	return result;
}

/* every mapping in the range */
EXPORT gpu_result cuMemUnmap(gpu_ptr address, size_t size)
{
	if (!address)
		return GPU_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAPPINGS; i++)
		if (mappings[i].handle && mappings[i].address - address < size) {
			stand_refer(mappings[i].handle, 0, -1);
			mappings[i].handle = 0;
		}
	pthread_mutex_unlock(&lock);
	return GPU_SUCCESS;
}

EXPORT gpu_result cuMemSetAccess(
    gpu_ptr address, size_t size, const struct gpu_access *access, size_t n)
{
	return GPU_SUCCESS;
}

/* a window onto several devices' memory, without memory of its own */
EXPORT gpu_result cuMulticastCreate(gpu_handle *out, const struct gpu_multicast_prop *prop)
{
	return stand_ready() ? stand_take_handle(out, prop->size, 'v') : GPU_ERROR_NOT_INITIALIZED;
}

EXPORT gpu_result cuMulticastBindMem(gpu_handle multicast, size_t at, gpu_handle handle,
    size_t offset, size_t size, unsigned long long flags)
{
	return size ? GPU_SUCCESS : GPU_ERROR_OUT_OF_MEMORY;
}

/* memory of other processes */
EXPORT gpu_result cuIpcOpenMemHandle_v2(gpu_ptr *out, struct gpu_ipc_handle handle, unsigned flags)
{
	for (size_t i = 0; i < sizeof(handle.reserved); i++)
		if (handle.reserved[i] != (uint8_t)(i + 1))
			stand_violation("the handle did not arrive whole");
	return stand_take(out, 1, 'v', 0);
}

EXPORT gpu_result cuIpcCloseMemHandle(gpu_ptr address)
{
	return stand_give(address);
}

EXPORT gpu_result cuMemImportFromShareableHandle(gpu_handle *out, void *handle, int type)
{
	return stand_take_handle(out, 1 << 21, 'v');
}

EXPORT gpu_result cuMemPoolImportPointer(gpu_ptr *out, gpu_pool pool, struct gpu_pool_export *data)
{
	return stand_take(out, 4096, 'v', 0);
}

EXPORT gpu_result cuImportExternalMemory(gpu_object *out, const struct gpu_external_desc *desc)
{
	gpu_handle handle;
	gpu_result result =
	    stand_ready() ? stand_take_handle(&handle, desc->size, 'v') : GPU_ERROR_NOT_INITIALIZED;

	if (!result)
		*out = (gpu_object)(uintptr_t)handle;
	return result;
}

EXPORT gpu_result cuExternalMemoryGetMappedBuffer(
    gpu_ptr *out, gpu_object memory, const struct gpu_external_buffer *desc)
{
	return stand_take(out, desc->size, 'v', 0);
}

EXPORT gpu_result cuExternalMemoryGetMappedMipmappedArray(
    gpu_array *out, gpu_object memory, const struct gpu_external_mipmap *desc)
{
	gpu_handle handle;
	gpu_result result = stand_take_handle(&handle, 4096, 'v');

	if (!result)
		*out = (gpu_array)(uintptr_t)handle;
	return result;
}

EXPORT gpu_result cuDestroyExternalMemory(gpu_object memory)
{
	return stand_refer((uintptr_t)memory, -1, 0);
}

/* graphs: memory is allocated at the launch */
static uint64_t graph_used;

EXPORT gpu_result cuGraphAddMemAllocNode(gpu_node *out, gpu_graph graph, const gpu_node *after,
    size_t count, struct gpu_node_alloc *params)
{
	static gpu_ptr next = 0x7e0000000000ull;

	if (!stand_ready())
		return GPU_ERROR_NOT_INITIALIZED;
	if (!params || !params->size) {
		if (params)
			params->address = 0xdeadbeef;
		return GPU_ERROR_INVALID_VALUE;
	}
	params->address = next += 1 << 21;
	graph_used += params->size;
	*out = NULL;
	return GPU_SUCCESS;
}

EXPORT gpu_result cuGraphAddMemFreeNode(
    gpu_node *out, gpu_graph graph, const gpu_node *after, size_t count, gpu_ptr address)
{
	return address ? GPU_SUCCESS : GPU_ERROR_INVALID_VALUE;
}

EXPORT gpu_result cuGraphAddNode_v2(gpu_node *out, gpu_graph graph, const gpu_node *after,
    const void *edges, size_t count, struct gpu_node_params *params)
{
	if (params && params->type == GPU_NODE_MEM_ALLOC)
		return cuGraphAddMemAllocNode(out, graph, after, count, &params->of.alloc);
	return params ? GPU_SUCCESS : GPU_ERROR_INVALID_VALUE;
}

EXPORT gpu_result cuGraphLaunch(gpu_object exec, gpu_stream stream)
{
	return stand_enter();
}

EXPORT gpu_result cuGraphDestroy(gpu_graph graph)
{
	return GPU_SUCCESS;
}

EXPORT gpu_result cuDeviceGetGraphMemAttribute(gpu_device device, int attribute, void *value)
{
	stand_question("cuDeviceGetGraphMemAttribute");
	*(uint64_t *)value =
	    attribute == GPU_GRAPH_RESERVED_CURRENT ? (graph_used + (32u << 20)) : graph_used;
	return GPU_SUCCESS;
}

/* calls that use memory as a side effect */
EXPORT gpu_result cuModuleLoadData(gpu_module *out, const void *image)
{
	gpu_result result = stand_enter();

	if (!result)
		stand_by_the_way(3 << 20);
	return result;
}

EXPORT gpu_result cuModuleUnload(gpu_module module)
{
	gpu_result result = stand_enter();

	if (!result)
		stand_by_the_way(-(3 << 20));
	return result;
}

EXPORT gpu_result cuLibraryLoadData(gpu_object *out, const void *what, int *jit_options,
    void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)
{
	gpu_result result = stand_enter();

	if (!result)
		stand_by_the_way(5 << 20);
	return result;
}

EXPORT gpu_result cuCtxSetLimit(int limit, size_t value)
{
	gpu_result result = stand_enter();

	if (!result)
		stand_by_the_way((int64_t)value);
	return result;
}

/* Functions of the program run on a thread of the driver, where no call is allowed. */
struct callback {
	void (*function)(void *);
	void *data;
};

static void *call_back(void *p)
{
	struct callback *c = p;

	stand_self.callback = 1;
	c->function(c->data);
	return NULL;
}

EXPORT gpu_result cuLaunchHostFunc(gpu_stream stream, void (*function)(void *), void *data)
{
	struct callback c = {function, data};
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 32768);
	if (pthread_create(&thread, &small, call_back, &c))
		return GPU_ERROR_OUT_OF_MEMORY;
	pthread_join(thread, NULL);
	return GPU_SUCCESS;
}
