/*
 * driver_memory.c - the driver's entry points for memory with an address: device, managed,
 * page-locked, arrays, copies, and queries about pointers.
 */
#include <string.h>

#include "simgpu/device/heap.h"
#include "simgpu/device/machine.h"
#include "simgpu/driver/driver.h"

struct array {
	struct object head;
	struct phys *phys;
};

/* Allocates device memory. Releases unused memory of pools before the request fails. */
static int allocate(const char *call, size_t size, gpu_ptr *out)
{
	struct context *context;
	struct block *block;
	int rc = driver_begin_unsafe(&context);

	if (rc)
		return rc;
	if (!out || inject_failure(call, size))
		return driver_end(out ? SIM_OUT_OF_MEMORY : SIM_INVALID_VALUE);
	rc = memory_alloc(context->head.device, size, &block);
	if (rc == SIM_OUT_OF_MEMORY) {
		pool_release_unused(context->head.device);
		rc = memory_alloc(context->head.device, size, &block);
	}
	if (!rc)
		*out = block->span.start;
	return driver_end(rc);
}

API_RETURNS(cuMemAlloc_v2, (gpu_ptr * out, size_t size), allocate("cuMemAlloc", size, out))

API(cuMemAllocPitch_v2,
    (gpu_ptr * out, size_t *pitch, size_t width, size_t height, unsigned element))
{
	size_t row = (width + 511) & ~(size_t)511, size;
	int rc;

	if (!pitch || __builtin_mul_overflow(row, height, &size))
		return SIM_INVALID_VALUE;
	rc = allocate("cuMemAllocPitch", size, out);
	if (!rc)
		*pitch = row;
	return rc;
}

API(cuMemFree_v2, (gpu_ptr address))
{
	struct context *context;
	struct block *block;
	int rc = driver_begin_unsafe(&context);

	if (rc)
		return rc;
	if (!address)
		return driver_end(SIM_OK);
	block = memory_find(address);
	if (!block || block->span.start != address)
		return driver_end(SIM_INVALID_VALUE);
	switch (block->kind) {
	case BLOCK_DEVICE:
	case BLOCK_MANAGED:
		memory_free(block);
		break;
	case BLOCK_POOL:
		pool_free(block);
		pool_after_synchronise(context->head.device);
		break;
	case BLOCK_GRAPH:
		graph_free_block(block);
		break;
	default:
		rc = SIM_INVALID_VALUE;
		break;
	}
	return driver_end(rc);
}

API(cuMemGetInfo_v2, (size_t * available, size_t *total))
{
	struct context *context;
	uint64_t a, t;
	int rc = driver_begin_unsafe(&context);

	if (rc)
		return rc;
	machine_level(context->head.device, &a, &t);
	if (available)
		*available = a;
	if (total)
		*total = t;
	return driver_end(SIM_OK);
}

API(cuMemGetAddressRange_v2, (gpu_ptr * base, size_t *size, gpu_ptr address))
{
	struct block *block;
	int rc = driver_begin();

	if (rc)
		return rc;
	block = memory_find(address);
	if (!block)
		return driver_end(SIM_NOT_FOUND);
	if (base)
		*base = block->span.start;
	if (size)
		*size = block->span.size;
	return driver_end(SIM_OK);
}

/* Allocates host memory that the device can access. */
static int allocate_host(
    enum block_kind kind, const char *call, size_t size, unsigned flags, gpu_ptr *out)
{
	struct context *context;
	struct block *block;
	int rc = out ? driver_begin_unsafe(&context) : SIM_INVALID_VALUE;

	if (rc)
		return rc;
	rc = inject_failure(call, size)
		 ? SIM_OUT_OF_MEMORY
		 : memory_alloc_host(kind, context->head.device, size, &block);
	if (!rc) {
		block->flags = flags;
		*out = block->span.start;
	}
	return driver_end(rc);
}

API_RETURNS(cuMemAllocManaged, (gpu_ptr * out, size_t size, unsigned flags),
    allocate_host(BLOCK_MANAGED, "cuMemAllocManaged", size, flags, out))
API_RETURNS(cuMemHostAlloc, (void **out, size_t size, unsigned flags),
    allocate_host(BLOCK_PINNED, "cuMemHostAlloc", size, flags, (gpu_ptr *)out))
API_RETURNS(cuMemAllocHost_v2, (void **out, size_t size), self_cuMemHostAlloc(out, size, 0))

static int free_host(enum block_kind kind, void *address, int wrong)
{
	struct block *block;
	int rc = driver_begin();

	if (rc)
		return rc;
	if (!address && kind == BLOCK_PINNED)
		return driver_end(SIM_OK);
	block = memory_find((uint64_t)address);
	if (!block || block->kind != kind || block->span.start != (uint64_t)address)
		return driver_end(wrong);
	memory_free(block);
	return driver_end(SIM_OK);
}

API_RETURNS(cuMemFreeHost, (void *address), free_host(BLOCK_PINNED, address, SIM_INVALID_VALUE))

API(cuMemHostRegister_v2, (void *address, size_t size, unsigned flags))
{
	struct context *context;
	struct block *block;
	int rc = driver_begin_unsafe(&context);

	if (rc)
		return rc;
	rc = inject_failure("cuMemHostRegister", size) ? SIM_OUT_OF_MEMORY
						       : memory_register(address, size, &block);
	if (!rc) {
		block->device = context->head.device;
		block->flags = flags;
	}
	return driver_end(rc);
}

API_RETURNS(
    cuMemHostUnregister, (void *address), free_host(BLOCK_REGISTERED, address, SIM_NOT_REGISTERED))

API(cuMemHostGetDevicePointer_v2, (gpu_ptr * out, void *address, unsigned flags))
{
	struct block *block;
	int rc = driver_begin_block((gpu_ptr)address, &block);

	if (rc)
		return rc;
	if (!out)
		return driver_end(SIM_INVALID_VALUE);
	*out = (gpu_ptr)address;
	return driver_end(SIM_OK);
}

API(cuMemHostGetFlags, (unsigned *flags, void *address))
{
	struct block *block;
	int rc = driver_begin_block((gpu_ptr)address, &block);

	if (rc)
		return rc;
	if (!flags)
		return driver_end(SIM_INVALID_VALUE);
	*flags = block->flags;
	return driver_end(SIM_OK);
}

static const unsigned char format_bytes[64] = {
    [0x01] = 1, [0x02] = 2, [0x03] = 4, [0x08] = 1, [0x09] = 2, [0x0a] = 4, [0x10] = 2, [0x20] = 4};

/* Bytes of an array; a dimension of 0 counts as 1. */
static uint64_t array_bytes(uint64_t w, uint64_t h, uint64_t d, int format, unsigned channels)
{
	uint64_t element = format > 0 && format < 64 ? format_bytes[format] : 0;

	return (w ? w : 1) * (h ? h : 1) * (d ? d : 1) * (element ? element : 4) * channels;
}

static int allocate_array(gpu_array *out, const char *call, uint64_t bytes)
{
	struct context *context;
	struct array *array;
	int rc = driver_begin_unsafe(&context);

	if (rc)
		return rc;
	if (!bytes)
		return driver_end(SIM_INVALID_VALUE);
	array = object_new(OBJECT_ARRAY, context->head.device, sizeof(*array));
	rc = !array || inject_failure(call, bytes)
		 ? SIM_OUT_OF_MEMORY
		 : phys_new(context->head.device, bytes, &array->phys);
	if (!rc)
		*out = array;
	else if (array)
		object_free(array, sizeof(*array));
	return driver_end(rc);
}

API(cuArrayCreate_v2, (gpu_array * out, const struct gpu_array_desc *desc))
{
	if (!out || !desc)
		return SIM_INVALID_VALUE;
	return allocate_array(out, "cuArrayCreate",
	    array_bytes(desc->width, desc->height, 0, desc->format, desc->channels));
}

API(cuArray3DCreate_v2, (gpu_array * out, const struct gpu_array3d_desc *desc))
{
	if (!out || !desc)
		return SIM_INVALID_VALUE;
	return allocate_array(out, "cuArray3DCreate",
	    array_bytes(desc->width, desc->height, desc->depth, desc->format, desc->channels));
}

API(cuMipmappedArrayCreate, (gpu_array * out, const struct gpu_array3d_desc *desc, unsigned levels))
{
	uint64_t bytes = 0, w, h, d;

	if (!out || !desc || !levels || levels > 32)
		return SIM_INVALID_VALUE;
	w = desc->width;
	h = desc->height;
	d = desc->depth;
	for (unsigned i = 0; i < levels; i++) {
		bytes += array_bytes(w, h, d, desc->format, desc->channels);
		w = w > 1 ? w / 2 : w;
		h = h > 1 ? h / 2 : h;
		d = d > 1 ? d / 2 : d;
	}
	return allocate_array(out, "cuMipmappedArrayCreate", bytes);
}

API(cuArrayDestroy, (gpu_array handle))
{
	int rc;
	struct array *array = driver_begin_object(handle, OBJECT_ARRAY, &rc);

	if (!array)
		return rc;
	phys_free(array->phys);
	object_free(array, sizeof(*array));
	return driver_end(SIM_OK);
}

API_RETURNS(cuMipmappedArrayDestroy, (gpu_array handle), self_cuArrayDestroy(handle))

enum copy_mode { COPY_SYNC, COPY_ASYNC };

/* Adds a node on a capturing stream; else copies at once. */
static int copy(gpu_ptr to, gpu_ptr from, size_t n, gpu_stream handle, enum copy_mode mode)
{
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	if (mode == COPY_SYNC)
		rc = capture_forbids();
	if (!rc && stream->capture)
		return driver_end_captured(
		    stream, &(struct node){.type = NODE_MEMCPY, .to = to, .from = from, .size = n});
	return driver_end(rc ? rc : memory_copy(to, from, n));
}

API_RETURNS(cuMemcpy, (gpu_ptr to, gpu_ptr from, size_t n), copy(to, from, n, NULL, COPY_SYNC))
API_PTSZ_RETURNS(cuMemcpyAsync, (gpu_ptr to, gpu_ptr from, size_t n, gpu_stream stream),
    copy(to, from, n, stream, COPY_ASYNC))
API_RETURNS(cuMemcpyPeer, (gpu_ptr to, gpu_context tc, gpu_ptr from, gpu_context fc, size_t n),
    copy(to, from, n, NULL, COPY_SYNC))
API_PTSZ_RETURNS(cuMemcpyPeerAsync,
    (gpu_ptr to, gpu_context tc, gpu_ptr from, gpu_context fc, size_t n, gpu_stream stream),
    copy(to, from, n, stream, COPY_ASYNC))
API_RETURNS(cuMemcpyHtoD_v2, (gpu_ptr to, const void *from, size_t n),
    copy(to, (gpu_ptr)from, n, NULL, COPY_SYNC))
API_PTSZ_RETURNS(cuMemcpyHtoDAsync_v2, (gpu_ptr to, const void *from, size_t n, gpu_stream stream),
    copy(to, (gpu_ptr)from, n, stream, COPY_ASYNC))
API_RETURNS(cuMemcpyDtoH_v2, (void *to, gpu_ptr from, size_t n),
    copy((gpu_ptr)to, from, n, NULL, COPY_SYNC))
API_PTSZ_RETURNS(cuMemcpyDtoHAsync_v2, (void *to, gpu_ptr from, size_t n, gpu_stream stream),
    copy((gpu_ptr)to, from, n, stream, COPY_ASYNC))
API_RETURNS(
    cuMemcpyDtoD_v2, (gpu_ptr to, gpu_ptr from, size_t n), copy(to, from, n, NULL, COPY_SYNC))
API_PTSZ_RETURNS(cuMemcpyDtoDAsync_v2, (gpu_ptr to, gpu_ptr from, size_t n, gpu_stream stream),
    copy(to, from, n, stream, COPY_ASYNC))

static int fill(gpu_ptr to, uint32_t value, unsigned width, size_t n, gpu_stream handle)
{
	struct stream *stream;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	if (stream->capture)
		return driver_end_captured(stream, &(struct node){.type = NODE_MEMSET,
						       .to = to,
						       .from = value,
						       .width = width,
						       .size = n * width});
	return driver_end(memory_fill(to, value, width, n * width));
}

API_RETURNS(cuMemsetD8_v2, (gpu_ptr to, unsigned char value, size_t n), fill(to, value, 1, n, NULL))
API_RETURNS(
    cuMemsetD16_v2, (gpu_ptr to, unsigned short value, size_t n), fill(to, value, 2, n, NULL))
API_RETURNS(cuMemsetD32_v2, (gpu_ptr to, unsigned value, size_t n), fill(to, value, 4, n, NULL))
API_PTSZ_RETURNS(cuMemsetD8Async, (gpu_ptr to, unsigned char value, size_t n, gpu_stream stream),
    fill(to, value, 1, n, stream))
API_PTSZ_RETURNS(cuMemsetD16Async, (gpu_ptr to, unsigned short value, size_t n, gpu_stream stream),
    fill(to, value, 2, n, stream))
API_PTSZ_RETURNS(cuMemsetD32Async, (gpu_ptr to, unsigned value, size_t n, gpu_stream stream),
    fill(to, value, 4, n, stream))
API_PTSZ_RETURNS(cuStreamWriteValue32,
    (gpu_stream stream, gpu_ptr to, unsigned value, unsigned flags), fill(to, value, 4, 1, stream))
API_PTSZ_RETURNS(cuStreamWriteValue32_v2,
    (gpu_stream stream, gpu_ptr to, unsigned value, unsigned flags), fill(to, value, 4, 1, stream))

/* Queries one CUpointer_attribute. Pre: the model's lock is held. */
static int pointer_attribute(void *value, int attribute, gpu_ptr address)
{
	struct block *block = memory_find(address);
	bool host = block && (block->kind == BLOCK_PINNED || block->kind == BLOCK_REGISTERED);

	if (!block)
		return SIM_INVALID_VALUE;
	switch (attribute) {
	case 1: /* context */
		*(void **)value = primary_of(block->device);
		return SIM_OK;
	case 2: /* memory type: host or device */
		*(int *)value = host ? 1 : 2;
		return SIM_OK;
	case 3: /* device address */
		*(gpu_ptr *)value = address;
		return SIM_OK;
	case 4: /* host address */
		if (!host && block->kind != BLOCK_MANAGED)
			return SIM_INVALID_VALUE;
		*(void **)value = (void *)address;
		return SIM_OK;
	case 6:
		*(int *)value = 1;
		return SIM_OK;
	case 7:
		*(unsigned long long *)value = block->id;
		return SIM_OK;
	case 8:
		*(int *)value = block->kind == BLOCK_MANAGED;
		return SIM_OK;
	case 9:
		*(int *)value = ordinal_of(block->device);
		return SIM_OK;
	case 10: /* can be exported by cuIpc */
		*(int *)value = block->kind == BLOCK_DEVICE;
		return SIM_OK;
	case 11:
		*(gpu_ptr *)value = block->span.start;
		return SIM_OK;
	case 12:
		*(size_t *)value = block->span.size;
		return SIM_OK;
	case 13: /* mapped */
		*(int *)value = 1;
		return SIM_OK;
	case 14: /* handle types for export */
		*(unsigned long long *)value = block->kind == BLOCK_MAPPED;
		return SIM_OK;
	case 16:
		*(unsigned *)value = 3;
		return SIM_OK;
	case 17:
		*(void **)value = NULL;
		return SIM_OK;
	default:
		return SIM_INVALID_VALUE;
	}
}

API(cuPointerGetAttribute, (void *value, int attribute, gpu_ptr address))
{
	int rc = driver_begin();

	if (rc)
		return rc;
	return driver_end(value ? pointer_attribute(value, attribute, address) : SIM_INVALID_VALUE);
}

/* Succeeds with zeros for unknown memory. */
API(cuPointerGetAttributes, (unsigned count, int *attributes, void **values, gpu_ptr address))
{
	int rc = driver_begin();

	if (rc)
		return rc;
	if (!attributes || !values)
		return driver_end(SIM_INVALID_VALUE);
	for (unsigned i = 0; i < count; i++) {
		bool wide = (attributes[i] >= 1 && attributes[i] <= 4 && attributes[i] != 2) ||
			    attributes[i] == 7 || attributes[i] == 11 || attributes[i] == 12 ||
			    attributes[i] == 14 || attributes[i] == 17;

		if (pointer_attribute(values[i], attributes[i], address)) {
			if (attributes[i] == 9)
				*(int *)values[i] = -2;
			else
				memset(values[i], 0, wide ? 8 : 4);
		}
	}
	return driver_end(SIM_OK);
}

API(cuPointerSetAttribute, (const void *value, int attribute, gpu_ptr address))
{
	struct block *block;
	int rc = driver_begin_block(address, &block);

	return rc ? rc : driver_end(SIM_OK);
}

/* Hints about managed memory have no effect; checks the address only. */
static int accept_hint(gpu_ptr address)
{
	struct block *block;
	int rc = driver_begin_block(address, &block);

	return rc ? rc : driver_end(block->kind == BLOCK_MANAGED ? SIM_OK : SIM_INVALID_VALUE);
}

API_PTSZ_RETURNS(cuMemPrefetchAsync,
    (gpu_ptr address, size_t size, gpu_device device, gpu_stream stream), accept_hint(address))
API_PTSZ_RETURNS(cuMemPrefetchAsync_v2,
    (gpu_ptr address, size_t size, struct gpu_location where, unsigned flags, gpu_stream stream),
    accept_hint(address))
API_RETURNS(cuMemAdvise, (gpu_ptr address, size_t size, int advice, gpu_device device),
    accept_hint(address))
API_RETURNS(cuMemAdvise_v2, (gpu_ptr address, size_t size, int advice, struct gpu_location where),
    accept_hint(address))
API_PTSZ_RETURNS(cuStreamAttachMemAsync,
    (gpu_stream stream, gpu_ptr address, size_t size, unsigned flags), accept_hint(address))
