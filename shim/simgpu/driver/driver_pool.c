/*
 * driver_pool.c - the driver's entry points for stream-ordered memory.
 */
#include "simgpu/driver/driver.h"

/* On a capturing stream adds a node, whose memory is allocated at the graph's launch. */
static int allocate(
    gpu_ptr *out, size_t size, struct pool *pool, gpu_stream handle, const char *call)
{
	struct stream *stream;
	struct block *block;
	struct node *node;
	int rc = stream_get(handle, &stream);

	if (rc)
		return rc;
	if (inject_failure(call, size))
		return SIM_OUT_OF_MEMORY;
	if (stream->capture) {
		node = capture_node(stream, NODE_ALLOC);
		rc = node ? graph_add_alloc(node, stream->head.device, size) : SIM_OUT_OF_MEMORY;
		if (!rc)
			*out = node->to;
		return rc;
	}
	if (!pool)
		pool = pool_current(stream->head.device);
	if (!pool)
		return SIM_OUT_OF_MEMORY;
	rc = pool_alloc(pool, size, &block);
	if (!rc)
		*out = block->span.start;
	return rc;
}

API_PTSZ(cuMemAllocAsync, (gpu_ptr * out, size_t size, gpu_stream stream))
{
	int rc = driver_begin();

	if (rc)
		return rc;
	return driver_end(
	    out ? allocate(out, size, NULL, stream, "cuMemAllocAsync") : SIM_INVALID_VALUE);
}

API_PTSZ(cuMemAllocFromPoolAsync, (gpu_ptr * out, size_t size, gpu_pool handle, gpu_stream stream))
{
	int rc;
	struct pool *pool = driver_begin_object(handle, OBJECT_POOL, &rc);

	if (!pool)
		return rc;
	if (!out)
		return driver_end(SIM_INVALID_VALUE);
	return driver_end(allocate(out, size, pool, stream, "cuMemAllocFromPoolAsync"));
}

API_PTSZ(cuMemFreeAsync, (gpu_ptr address, gpu_stream handle))
{
	struct stream *stream;
	struct block *block;
	int rc = driver_begin_stream(handle, &stream);

	if (rc)
		return rc;
	if (stream->capture)
		return driver_end_captured(
		    stream, &(struct node){.type = NODE_FREE, .to = address});
	block = memory_find(address);
	if (!block || block->span.start != address)
		return driver_end(SIM_INVALID_VALUE);
	if (block->kind == BLOCK_POOL)
		pool_free(block);
	else if (block->kind == BLOCK_GRAPH)
		graph_free_block(block);
	else if (block->kind == BLOCK_DEVICE)
		memory_free(block);
	else
		rc = SIM_INVALID_VALUE;
	return driver_end(rc);
}

API(cuMemPoolCreate, (gpu_pool * out, const struct gpu_pool_props *props))
{
	int device, rc = driver_begin();

	if (rc)
		return rc;
	if (!out || !props)
		return driver_end(SIM_INVALID_VALUE);
	if (props->location.type != GPU_LOCATION_DEVICE)
		return driver_end(SIM_NOT_SUPPORTED);
	device = device_of(props->location.id);
	if (device < 0)
		return driver_end(SIM_INVALID_DEVICE);
	*out = pool_new(device, props->max_size);
	return driver_end(*out ? SIM_OK : SIM_OUT_OF_MEMORY);
}

API(cuMemPoolDestroy, (gpu_pool handle))
{
	int rc;
	struct pool *pool = driver_begin_object(handle, OBJECT_POOL, &rc);

	if (!pool)
		return rc;
	if (pool->standard)
		return driver_end(SIM_INVALID_VALUE);
	pool_destroy(pool);
	return driver_end(SIM_OK);
}

API(cuMemPoolTrimTo, (gpu_pool handle, size_t keep))
{
	int rc;
	struct pool *pool = driver_begin_object(handle, OBJECT_POOL, &rc);

	if (!pool)
		return rc;
	pool_trim(pool, keep);
	return driver_end(SIM_OK);
}

API(cuMemPoolSetAttribute, (gpu_pool handle, int attribute, void *value))
{
	int rc;
	struct pool *pool = driver_begin_object(handle, OBJECT_POOL, &rc);

	if (!pool)
		return rc;
	if (!value)
		return driver_end(SIM_INVALID_VALUE);
	switch (attribute) {
	case 1:
	case 2:
	case 3:
		pool->reuse[attribute] = *(int *)value;
		break;
	case GPU_POOL_RELEASE_THRESHOLD:
		pool->threshold = *(uint64_t *)value;
		break;
	case GPU_POOL_RESERVED_HIGH: /* only 0 is valid: resets it */
		pool->reserved_high = pool->reserved;
		break;
	case GPU_POOL_USED_HIGH:
		pool->used_high = pool->used;
		break;
	default:
		rc = SIM_INVALID_VALUE;
		break;
	}
	return driver_end(rc);
}

API(cuMemPoolGetAttribute, (gpu_pool handle, int attribute, void *value))
{
	int rc;
	struct pool *pool = driver_begin_object(handle, OBJECT_POOL, &rc);

	if (!pool)
		return rc;
	if (!value || attribute < 1 || attribute > GPU_POOL_USED_HIGH)
		return driver_end(SIM_INVALID_VALUE);
	if (attribute < GPU_POOL_RELEASE_THRESHOLD)
		*(int *)value = pool->reuse[attribute];
	else
		*(uint64_t *)value = (const uint64_t[]){
		    [GPU_POOL_RELEASE_THRESHOLD] = pool->threshold,
		    [GPU_POOL_RESERVED_CURRENT] = pool->reserved,
		    [GPU_POOL_RESERVED_HIGH] = pool->reserved_high,
		    [GPU_POOL_USED_CURRENT] = pool->used,
		    [GPU_POOL_USED_HIGH] = pool->used_high,
		}[attribute];
	return driver_end(SIM_OK);
}

API(cuMemPoolSetAccess, (gpu_pool handle, const struct gpu_access *access, size_t count))
{
	int rc;
	struct pool *pool = driver_begin_object(handle, OBJECT_POOL, &rc);

	return pool ? driver_end(access || !count ? SIM_OK : SIM_INVALID_VALUE) : rc;
}

API(cuMemPoolGetAccess, (int *flags, gpu_pool handle, struct gpu_location *where))
{
	int rc;
	struct pool *pool = driver_begin_object(handle, OBJECT_POOL, &rc);

	if (!pool)
		return rc;
	if (!flags || !where)
		return driver_end(SIM_INVALID_VALUE);
	*flags = 3;
	return driver_end(SIM_OK);
}

static int find_pool(gpu_pool *out, gpu_device ordinal, struct pool *(*get)(int device))
{
	int device, rc = driver_begin_device(ordinal, &device);

	if (rc)
		return rc;
	if (!out)
		return driver_end(SIM_INVALID_VALUE);
	*out = get(device);
	return driver_end(*out ? SIM_OK : SIM_OUT_OF_MEMORY);
}

API_RETURNS(cuDeviceGetDefaultMemPool, (gpu_pool * out, gpu_device device),
    find_pool(out, device, pool_default))
API_RETURNS(
    cuDeviceGetMemPool, (gpu_pool * out, gpu_device device), find_pool(out, device, pool_current))

API(cuDeviceSetMemPool, (gpu_device ordinal, gpu_pool handle))
{
	int rc;
	struct pool *pool = driver_begin_object(handle, OBJECT_POOL, &rc);

	if (!pool)
		return rc;
	if (device_of(ordinal) < 0 || pool->head.device != device_of(ordinal))
		return driver_end(SIM_INVALID_DEVICE);
	pool_set_current(device_of(ordinal), pool);
	return driver_end(SIM_OK);
}

API(cuMemGetDefaultMemPool, (gpu_pool * out, struct gpu_location *where, int type))
{
	if (!where || where->type != GPU_LOCATION_DEVICE)
		return where ? SIM_NOT_SUPPORTED : SIM_INVALID_VALUE;
	return find_pool(out, where->id, pool_default);
}

API(cuMemGetMemPool, (gpu_pool * out, struct gpu_location *where, int type))
{
	if (!where || where->type != GPU_LOCATION_DEVICE)
		return where ? SIM_NOT_SUPPORTED : SIM_INVALID_VALUE;
	return find_pool(out, where->id, pool_current);
}

API(cuMemSetMemPool, (struct gpu_location * where, int type, gpu_pool pool))
{
	if (!where || where->type != GPU_LOCATION_DEVICE)
		return where ? SIM_NOT_SUPPORTED : SIM_INVALID_VALUE;
	return self_cuDeviceSetMemPool(where->id, pool);
}
