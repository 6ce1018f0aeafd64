/*
 * runtime_memory.c - the runtime's entry points for memory: each calls the driver's counterpart.
 */
#include <string.h>

#include "simgpu/runtime/runtime.h"

API(cudaMalloc, (void **out, size_t size))
{
	gpu_ptr address = 0;
	int rc;

	if (!out)
		return runtime_end(SIM_INVALID_VALUE);
	rc = runtime_enter();
	if (!rc && size)
		rc = cuMemAlloc_v2(&address, size);
	*out = (void *)address;
	return runtime_end(rc);
}

API(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height))
{
	gpu_ptr address = 0;
	int rc;

	if (!out || !pitch)
		return runtime_end(SIM_INVALID_VALUE);
	rc = runtime_enter();
	*pitch = 0;
	if (!rc && width && height)
		rc = cuMemAllocPitch_v2(&address, pitch, width, height, 4);
	*out = (void *)address;
	return runtime_end(rc);
}

API(cudaMalloc3D, (struct gpu_pitched * out, struct gpu_extent extent))
{
	size_t rows;
	int rc;

	if (!out || __builtin_mul_overflow(extent.height, extent.depth, &rows))
		return runtime_end(SIM_INVALID_VALUE);
	*out = (struct gpu_pitched){.width = extent.width, .height = extent.height};
	rc = runtime_enter();
	if (!rc && extent.width && rows)
		rc = cuMemAllocPitch_v2(
		    (gpu_ptr *)&out->address, &out->pitch, extent.width, rows, 4);
	return runtime_end(rc);
}

FORWARD(cudaFree, (void *address), address ? cuMemFree_v2((gpu_ptr)address) : SIM_OK)
FORWARD(cudaMemGetInfo, (size_t * available, size_t *total), cuMemGetInfo_v2(available, total))
FORWARD(cudaMallocManaged, (void **out, size_t size, unsigned flags),
    out ? cuMemAllocManaged((gpu_ptr *)out, size, flags) : SIM_INVALID_VALUE)
FORWARD(cudaMallocHost, (void **out, size_t size),
    out ? cuMemHostAlloc(out, size, 0) : SIM_INVALID_VALUE)
FORWARD(cudaHostAlloc, (void **out, size_t size, unsigned flags),
    out ? cuMemHostAlloc(out, size, flags) : SIM_INVALID_VALUE)
FORWARD(cudaFreeHost, (void *address), cuMemFreeHost(address))
FORWARD(cudaHostRegister, (void *address, size_t size, unsigned flags),
    cuMemHostRegister_v2(address, size, flags))
FORWARD(cudaHostUnregister, (void *address), cuMemHostUnregister(address))
FORWARD(cudaHostGetDevicePointer, (void **out, void *address, unsigned flags),
    cuMemHostGetDevicePointer_v2((gpu_ptr *)out, address, flags))
FORWARD(cudaHostGetFlags, (unsigned *flags, void *address), cuMemHostGetFlags(flags, address))

/* The array format of a channel's bits and kind (signed, unsigned, float). */
static int format_of(const struct gpu_channel *d)
{
	switch (d->x) {
	case 8:
		return d->kind == 0 ? 0x08 : 0x01;
	case 16:
		return d->kind == 2 ? 0x10 : d->kind == 0 ? 0x09 : 0x02;
	default:
		return d->kind == 2 ? 0x20 : d->kind == 0 ? 0x0a : 0x03;
	}
}

/* Fills *out and returns it; NULL without a channel's description, which the driver refuses. */
static const struct gpu_array3d_desc *array_of(const struct gpu_channel *d,
    struct gpu_extent extent, unsigned flags, struct gpu_array3d_desc *out)
{
	if (!d)
		return NULL;
	*out = (struct gpu_array3d_desc){.width = extent.width,
	    .height = extent.height,
	    .depth = extent.depth,
	    .format = format_of(d),
	    .channels = (unsigned)(!!d->x + !!d->y + !!d->z + !!d->w),
	    .flags = flags};
	return out;
}

FORWARD(cudaMalloc3DArray,
    (gpu_array * out, const struct gpu_channel *desc, struct gpu_extent extent, unsigned flags),
    cuArray3DCreate_v2(out, array_of(desc, extent, flags, &(struct gpu_array3d_desc){0})))
FORWARD(cudaMallocArray,
    (gpu_array * out, const struct gpu_channel *desc, size_t width, size_t height, unsigned flags),
    cuArray3DCreate_v2(out, array_of(desc, (struct gpu_extent){width, height, 0}, flags,
				&(struct gpu_array3d_desc){0})))
FORWARD(cudaMallocMipmappedArray,
    (gpu_array * out, const struct gpu_channel *desc, struct gpu_extent extent, unsigned levels,
	unsigned flags),
    cuMipmappedArrayCreate(
	out, array_of(desc, extent, flags, &(struct gpu_array3d_desc){0}), levels))
FORWARD(cudaFreeArray, (gpu_array array), array ? cuArrayDestroy(array) : SIM_OK)
FORWARD(cudaFreeMipmappedArray, (gpu_array array), array ? cuMipmappedArrayDestroy(array) : SIM_OK)

API_PTSZ(cudaMallocAsync, (void **out, size_t size, gpu_stream stream))
{
	int rc;

	if (!out)
		return runtime_end(SIM_INVALID_VALUE);
	rc = runtime_enter();
	if (!rc && size)
		rc = cuMemAllocAsync((gpu_ptr *)out, size, stream);
	else if (!size)
		*out = NULL;
	return runtime_end(rc);
}

FORWARD_PTSZ(cudaMallocFromPoolAsync, (void **out, size_t size, gpu_pool pool, gpu_stream stream),
    out ? cuMemAllocFromPoolAsync((gpu_ptr *)out, size, pool, stream) : SIM_INVALID_VALUE)
FORWARD_PTSZ(cudaFreeAsync, (void *address, gpu_stream stream),
    address ? cuMemFreeAsync((gpu_ptr)address, stream) : SIM_OK)
FORWARD(cudaMemPoolCreate, (gpu_pool * out, const struct gpu_pool_props *props),
    cuMemPoolCreate(out, props))
FORWARD(cudaMemPoolDestroy, (gpu_pool pool), cuMemPoolDestroy(pool))
FORWARD(cudaMemPoolTrimTo, (gpu_pool pool, size_t keep), cuMemPoolTrimTo(pool, keep))
FORWARD(cudaMemPoolSetAttribute, (gpu_pool pool, int attribute, void *value),
    cuMemPoolSetAttribute(pool, attribute, value))
FORWARD(cudaMemPoolGetAttribute, (gpu_pool pool, int attribute, void *value),
    cuMemPoolGetAttribute(pool, attribute, value))
FORWARD(cudaMemPoolSetAccess, (gpu_pool pool, const struct gpu_access *access, size_t count),
    cuMemPoolSetAccess(pool, access, count))
FORWARD(cudaMemPoolGetAccess, (int *flags, gpu_pool pool, struct gpu_location *where),
    cuMemPoolGetAccess(flags, pool, where))
FORWARD(cudaDeviceSetMemPool, (gpu_device device, gpu_pool pool), cuDeviceSetMemPool(device, pool))
FORWARD(cudaDeviceGetMemPool, (gpu_pool * out, gpu_device device), cuDeviceGetMemPool(out, device))
FORWARD(cudaDeviceGetDefaultMemPool, (gpu_pool * out, gpu_device device),
    cuDeviceGetDefaultMemPool(out, device))
FORWARD(cudaMemGetDefaultMemPool, (gpu_pool * out, struct gpu_location *where, int type),
    cuMemGetDefaultMemPool(out, where, type))
FORWARD(cudaMemGetMemPool, (gpu_pool * out, struct gpu_location *where, int type),
    cuMemGetMemPool(out, where, type))
FORWARD(cudaMemSetMemPool, (struct gpu_location * where, int type, gpu_pool pool),
    cuMemSetMemPool(where, type, pool))
FORWARD(cudaIpcGetMemHandle, (struct gpu_ipc_handle * out, void *address),
    cuIpcGetMemHandle(out, (gpu_ptr)address))
FORWARD(cudaIpcOpenMemHandle, (void **out, struct gpu_ipc_handle handle, unsigned flags),
    cuIpcOpenMemHandle_v2((gpu_ptr *)out, handle, flags))
FORWARD(cudaIpcCloseMemHandle, (void *address), cuIpcCloseMemHandle((gpu_ptr)address))

/* Ignores the kind of copy, which follows from the addresses. */
FORWARD_PTDS(cudaMemcpy, (void *to, const void *from, size_t n, int kind),
    cuMemcpy((gpu_ptr)to, (gpu_ptr)from, n))
FORWARD_PTSZ(cudaMemcpyAsync, (void *to, const void *from, size_t n, int kind, gpu_stream stream),
    cuMemcpyAsync((gpu_ptr)to, (gpu_ptr)from, n, stream))
FORWARD(cudaMemcpyPeer, (void *to, gpu_device td, const void *from, gpu_device fd, size_t n),
    cuMemcpy((gpu_ptr)to, (gpu_ptr)from, n))
FORWARD(cudaMemcpyPeerAsync,
    (void *to, gpu_device td, const void *from, gpu_device fd, size_t n, gpu_stream stream),
    cuMemcpyAsync((gpu_ptr)to, (gpu_ptr)from, n, stream))

static int copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
    size_t height, gpu_stream stream)
{
	int rc = runtime_enter();

	for (size_t y = 0; y < height && width && !rc; y++)
		rc = cuMemcpyAsync(
		    (gpu_ptr)to + y * to_pitch, (gpu_ptr)from + y * from_pitch, width, stream);
	return runtime_end(rc);
}

API_PTDS(cudaMemcpy2D, (void *to, size_t to_pitch, const void *from, size_t from_pitch,
			   size_t width, size_t height, int kind))
{
	return copy_rows(to, to_pitch, from, from_pitch, width, height, NULL);
}

API_PTSZ_RETURNS(cudaMemcpy2DAsync,
    (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
	int kind, gpu_stream stream),
    copy_rows(to, to_pitch, from, from_pitch, width, height, stream))
FORWARD_PTDS(cudaMemset, (void *to, int value, size_t n),
    cuMemsetD8_v2((gpu_ptr)to, (unsigned char)value, n))
FORWARD_PTSZ(cudaMemsetAsync, (void *to, int value, size_t n, gpu_stream stream),
    cuMemsetD8Async((gpu_ptr)to, (unsigned char)value, n, stream))

API_PTDS(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height))
{
	int rc = runtime_enter();

	for (size_t y = 0; y < height && width && !rc; y++)
		rc = cuMemsetD8_v2((gpu_ptr)to + y * pitch, (unsigned char)value, width);
	return runtime_end(rc);
}

API_PTSZ(cudaMemset2DAsync,
    (void *to, size_t pitch, int value, size_t width, size_t height, gpu_stream stream))
{
	int rc = runtime_enter();

	for (size_t y = 0; y < height && width && !rc; y++)
		rc = cuMemsetD8Async((gpu_ptr)to + y * pitch, (unsigned char)value, width, stream);
	return runtime_end(rc);
}

struct pointer { /* cudaPointerAttributes; 13 has reserved words behind it */
	int type, device;
	void *on_device, *on_host;
};

/* Succeeds for memory that is not registered. */
API(cudaPointerGetAttributes, (struct pointer * out, const void *address))
{
	struct block *block;
	int rc;

	if (!out)
		return runtime_end(SIM_INVALID_VALUE);
	rc = runtime_up();
	if (rc)
		return runtime_end(rc);
	model_lock();
	block = memory_find((uint64_t)address);
	*out = (struct pointer){.type = 0, .device = -1};
	if (!block) {
		out->on_host = addresses_contain((uint64_t)address) ? NULL : (void *)address;
	} else {
		bool host = block->kind == BLOCK_PINNED || block->kind == BLOCK_REGISTERED;

		out->type = host ? 1 : block->kind == BLOCK_MANAGED ? 3 : 2;
		out->device = ordinal_of(block->device);
		out->on_device = (void *)address;
		out->on_host = out->type == 2 ? NULL : (void *)address;
	}
	model_unlock();
	return SIM_OK;
}

/* Hints about managed memory, without effect; their arguments differ between major versions. */
FORWARD_PTSZ(cudaMemPrefetchAsync,
    (const void *address, size_t size, gpu_word where, gpu_word flags_or_stream, gpu_word stream),
    cuMemPrefetchAsync((gpu_ptr)address, size, 0, NULL))
FORWARD(cudaMemAdvise, (const void *address, size_t size, int advice, gpu_word where),
    cuMemAdvise((gpu_ptr)address, size, advice, 0))
FORWARD_PTSZ(cudaStreamAttachMemAsync,
    (gpu_stream stream, void *address, size_t size, unsigned flags),
    cuStreamAttachMemAsync(stream, (gpu_ptr)address, size, flags))
