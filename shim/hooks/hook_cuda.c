/*
 * hook_cuda.c - makes a wrapper of each row of cuda_api.def that has an effect, and defines the
 * effects. A wrapper passes its arguments and the real function's result on unchanged; it reads
 * out-parameters only after success, and only if they are not NULL.
 */
#include <errno.h>
#include <stddef.h>

#include "cuda/cuda_call.h"
#include "cuda/cuda_device.h"
#include "cuda/cuda_find.h"
#include "shim.h"

/* --- sizes --- */

static inline uint64_t gpu_times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static inline uint64_t gpu_at_least_1(uint64_t n)
{
	return n ? n : 1;
}

static inline uint64_t gpu_extent_bytes(struct gpu_extent e)
{
	return gpu_times(gpu_times(e.width, gpu_at_least_1(e.height)), gpu_at_least_1(e.depth));
}

static uint64_t gpu_sum(const size_t *sizes, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; sizes && i < count; i++)
		sum += sizes[i];
	return sum;
}

/* Bits of a texel of a CUarray_format; of a block-compressed format, of a 4 x 4 block / 16. */
static uint64_t texel_bits(int format, unsigned channels)
{
	switch (format) {
	case 0x02:
	case 0x09:
	case 0x10: /* half */
		return 16ull * channels;
	case 0x03:
	case 0x0a:
	case 0x20: /* float */
		return 32ull * channels;
	case 0xb0: /* NV12 */
		return 12;
	case 0xc1:
	case 0xc4:
	case 0xc6:
	case 0xc9:
		return 16;
	case 0xc2:
	case 0xc5:
	case 0xc7:
	case 0xca:
		return 32;
	case 0xc8:
	case 0xcb:
		return 64;
	case 0x91 ... 0x92: /* BC1, BC4: 8 bytes a block */
	case 0x97 ... 0x98:
		return 4;
	case 0x93 ... 0x96:
	case 0x99 ... 0x9e:
		return 8;
	default: /* 8 bits, signed, unsigned or normalised */
		return 8ull * channels;
	}
}

static uint64_t texels_bytes(uint64_t width, uint64_t height, uint64_t depth, uint64_t bits)
{
	uint64_t texels =
	    gpu_times(gpu_times(width, gpu_at_least_1(height)), gpu_at_least_1(depth));

	return texels > UINT64_MAX / 64 ? UINT64_MAX : (texels * bits + 7) / 8;
}

static uint64_t gpu_array_bytes(const struct gpu_array_desc *d)
{
	return d ? texels_bytes(d->width, d->height, 1, texel_bits(d->format, d->channels)) : 0;
}

/* Bytes of all mipmap levels: each is half as wide, high and deep as the one before. */
static uint64_t gpu_array3d_bytes(const struct gpu_array3d_desc *d, unsigned levels)
{
	bool layers = d && (d->flags & 1); /* the depth counts layers and is not halved */
	uint64_t sum = 0;

	for (unsigned i = 0; d && i < levels && i < 64; i++) {
		uint64_t width = gpu_at_least_1(d->width >> i), height = d->height >> i,
			 depth = layers ? d->depth : d->depth >> i, bytes;

		bytes = texels_bytes(width, height, depth, texel_bits(d->format, d->channels));
		if (__builtin_add_overflow(sum, bytes, &sum))
			return UINT64_MAX;
		if (!(d->width >> i) && !height)
			break;
	}
	return sum;
}

static uint64_t gpu_channel_bytes(
    const struct gpu_channel *d, uint64_t width, uint64_t height, uint64_t depth)
{
	return d ? texels_bytes(
		       width, height, depth, (uint64_t)(unsigned)(d->x + d->y + d->z + d->w))
		 : 0;
}

/* --- kinds of blocks --- */

#define KIND_DEVICE CUDA_DEVICE
#define KIND_MANAGED CUDA_MANAGED
#define KIND_PINNED CUDA_PINNED
#define KIND_REGISTERED CUDA_PINNED
#define KIND_VA CUDA_VA
#define KIND_FOREIGN CUDA_FOREIGN
#define KIND_FOREIGN_HANDLE CUDA_FOREIGN
#define KIND_MULTICAST CUDA_DEVICE
#define KIND_ARRAY CUDA_KINDS
#define KIND_HANDLE CUDA_KINDS
#define KIND_ADDRESS CUDA_KINDS
#define FLAGS_DEVICE 0
#define FLAGS_MANAGED 0
#define FLAGS_PINNED 0
#define FLAGS_REGISTERED TRACE_SPACE_REGISTERED
#define FLAGS_VA 0
#define FLAGS_FOREIGN 0
#define FLAGS_FOREIGN_HANDLE TRACE_SPACE_HANDLE
#define FLAGS_MULTICAST (TRACE_SPACE_HANDLE | TRACE_SPACE_MULTICAST)
#define FLAGS_ARRAY (TRACE_SPACE_HANDLE | TRACE_SPACE_ARRAY)
#define FLAGS_HANDLE TRACE_SPACE_HANDLE
#define FLAGS_ADDRESS 0

#define WORD(x) ((uint64_t)(uintptr_t)(x))
/* the value of an out-parameter that the call filled in; else 0 */
#define OUT(out) (result || !(out) ? 0 : WORD(*(out)))

/* Says whether the driver has read through the caller's pointers, so that we may, too. */
static inline bool gpu_arguments_read(gpu_result result)
{
	return result != GPU_ERROR_NOT_INITIALIZED && result != GPU_ERROR_DEINITIALIZED &&
	       result != GPU_ERROR_NOT_PERMITTED && result != GPU_ERROR_INVALID_CONTEXT;
}
#define IN(pointer) (gpu_arguments_read(result) ? (pointer) : NULL)

/* Sizes given as a number, and those read through a pointer. */
#define SIZE_DEVICE(size) size
#define SIZE_MANAGED(size) size
#define SIZE_PINNED(size) size
#define SIZE_VA(size) size
#define SIZE_FOREIGN(size) gpu_arguments_read(result) ? (size) : 0
#define SIZE_FOREIGN_HANDLE(size) SIZE_FOREIGN(size)
#define SIZE_MULTICAST(size) SIZE_FOREIGN(size)

static void allocated(const struct cuda_call *c, const struct cuda_block *b)
{
	/* a success without a block allocated nothing */
	if (c->outer && (c->result || b->address))
		cuda_allocated(c, b);
}

/* --- effects: what happens before the real call, and after it --- */

#define BEFORE_ALLOC(kind_, out, size_)
#define AFTER_ALLOC(kind_, out, size_)                                                             \
	allocated(&c, &(struct cuda_block){.kind = KIND_##kind_,                                   \
			  .flags = FLAGS_##kind_,                                                  \
			  .device = -1,                                                            \
			  .address = OUT(out),                                                     \
			  .size = SIZE_##kind_(size_)});

#define BEFORE_ALLOC_AT(kind_, at, size_)
#define AFTER_ALLOC_AT(kind_, at, size_)                                                           \
	allocated(&c, &(struct cuda_block){.kind = KIND_##kind_,                                   \
			  .flags = FLAGS_##kind_,                                                  \
			  .device = -1,                                                            \
			  .address = WORD(at),                                                     \
			  .size = size_});

#define BEFORE_ALLOC_PITCHED(out, pitch, width, height)
#define AFTER_ALLOC_PITCHED(out, pitch, width, height)                                             \
	AFTER_ALLOC(DEVICE, out, gpu_times(result || !(pitch) ? (width) : *(pitch), height))

#define BEFORE_ALLOC_ARRAY(out, size_)
#define AFTER_ALLOC_ARRAY(out, size_)                                                              \
	allocated(&c, &(struct cuda_block){.kind = CUDA_DEVICE,                                    \
			  .flags = FLAGS_ARRAY,                                                    \
			  .device = -1,                                                            \
			  .address = OUT(out),                                                     \
			  .size = gpu_arguments_read(result) ? (size_) : 0});

/* The caller names the device, so there need not be a context. */
static void allocated_handle(
    const struct cuda_call *c, uint64_t handle, size_t size, const struct gpu_alloc_prop *prop)
{
	bool device = prop && prop->location.type == GPU_LOCATION_DEVICE;

	allocated(c, &(struct cuda_block){.kind = prop && !device ? CUDA_PINNED : CUDA_DEVICE,
			 .flags = TRACE_SPACE_HANDLE,
			 .device = device ? prop->location.id : 0,
			 .address = handle,
			 .size = size});
}

#define BEFORE_ALLOC_HANDLE(out, size, prop)
#define AFTER_ALLOC_HANDLE(out, size, prop) allocated_handle(&c, OUT(out), size, IN(prop));

#define BEFORE_RETAIN(out)
#define AFTER_RETAIN(out)                                                                          \
	if (!result)                                                                               \
		allocated(&c, &(struct cuda_block){.kind = CUDA_DEVICE,                            \
				  .flags = TRACE_SPACE_HANDLE | TRACE_SPACE_REFERENCE,             \
				  .device = -1,                                                    \
				  .address = OUT(out)});

#define BEFORE_FREE(kind_, address)                                                                \
	if (c.outer)                                                                               \
		cuda_free_begin(&c, KIND_##kind_, FLAGS_##kind_, WORD(address), 0);
#define AFTER_FREE(kind_, address)                                                                 \
	if (c.outer)                                                                               \
		cuda_free_end(&c, KIND_##kind_, FLAGS_##kind_, WORD(address));

/* During a capture, memory is allocated and freed when the graph runs. */
static void allocated_async(
    const struct cuda_call *c, uint64_t address, size_t size, gpu_pool pool, gpu_stream stream)
{
	bool captured = c->outer && cuda_device_captures(WORD(stream));

	allocated(c, &(struct cuda_block){.kind = captured ? CUDA_GRAPH : CUDA_POOL,
			 .flags = TRACE_SPACE_STREAM | (captured ? TRACE_SPACE_CAPTURED : 0),
			 .device = -1,
			 .address = address,
			 .size = size,
			 .stream = WORD(stream),
			 .object = captured ? 0 : WORD(pool)});
}

#define BEFORE_ALLOC_ASYNC(out, size, pool, stream)
#define AFTER_ALLOC_ASYNC(out, size, pool, stream)                                                 \
	allocated_async(&c, OUT(out), size, pool, stream);

#define BEFORE_FREE_ASYNC(address, stream)                                                         \
	if (c.outer) {                                                                             \
		if (cuda_device_captures(WORD(stream)))                                            \
			flags_ |= TRACE_SPACE_CAPTURED;                                            \
		cuda_free_begin(&c, CUDA_KINDS, flags_, WORD(address), WORD(stream));              \
	}
#define AFTER_FREE_ASYNC(address, stream)                                                          \
	if (c.outer)                                                                               \
		cuda_free_end(&c, CUDA_KINDS, flags_, WORD(address));

#define BEFORE_MAP(address, size, offset, handle)
#define AFTER_MAP(address, size, offset, handle)                                                   \
	if (c.outer)                                                                               \
		cuda_mapped(&c, address, size, offset, handle);
#define BEFORE_UNMAP(address, size)                                                                \
	if (c.outer)                                                                               \
		cuda_unmap_begin(&c, address, size);
#define AFTER_UNMAP(address, size)                                                                 \
	if (c.outer)                                                                               \
		cuda_unmap_end(&c, address, size);

#define BEFORE_FAILS(size)
#define AFTER_FAILS(size)                                                                          \
	if (c.outer && result)                                                                     \
		cuda_failed(&c, size);

/* Calls whose effect only the driver knows. SAMPLE_BEFORE queries free memory before the call, too.
 */
#define SAMPLE_BEFORE                                                                              \
	if (c.outer)                                                                               \
		cuda_sample_before(&c);
#define AFTER_CALLED(device, object, value, type)                                                  \
	if (c.outer)                                                                               \
		cuda_called(&c, device, WORD(object), value, CUDA_OBJECT_##type);
#define BEFORE_CALL(object, value)
#define AFTER_CALL(object, value) AFTER_CALLED(-1, object, result ? 0 : (uint64_t)(value), OTHER)
#define BEFORE_MODULE() SAMPLE_BEFORE
#define AFTER_MODULE() AFTER_CALLED(-1, 0, 0, OTHER)
#define BEFORE_LIMIT(limit, value) SAMPLE_BEFORE
#define AFTER_LIMIT(limit, value) AFTER_CALL(limit, value)
#define BEFORE_CONTEXT_CREATED(out, device) SAMPLE_BEFORE
#define AFTER_CONTEXT_CREATED(out, device)                                                         \
	if (c.outer)                                                                               \
		cuda_context_created(&c, device, OUT(out));
#define BEFORE_POOL_CREATED(out, props)
#define AFTER_POOL_CREATED(out, props)                                                             \
	AFTER_CALLED(IN(props) && (props)->location.type == GPU_LOCATION_DEVICE                    \
			 ? (props)->location.id                                                    \
			 : -1,                                                                     \
	    OUT(out), 0, OTHER)
#define BEFORE_POOL_IMPORTED(out)
#define AFTER_POOL_IMPORTED(out) AFTER_CALLED(-1, OUT(out), 0, OTHER)
#define BEFORE_POOL_CALL(pool, value) SAMPLE_BEFORE
#define AFTER_POOL_CALL(pool, value) AFTER_CALLED(-1, pool, value, POOL)
#define BEFORE_POOL_SET(pool, attribute, value)
#define AFTER_POOL_SET(pool, attribute, value)                                                     \
	if (!result && (attribute) == GPU_POOL_RELEASE_THRESHOLD && (value))                       \
	AFTER_CALLED(-1, pool, *(const uint64_t *)(value), POOL)
#define BEFORE_POOL_DESTROYED(pool)
#define AFTER_POOL_DESTROYED(pool)                                                                 \
	if (c.outer)                                                                               \
		cuda_cleared(&c, CUDA_POOL, 0, TRACE_CLEAR_POOL, WORD(pool));

#define BEFORE_PROBE(available, total)
#define AFTER_PROBE(available, total)                                                              \
	if (c.outer && !result)                                                                    \
		cuda_probed(&c, (available) ? *(available) : 0, (total) ? *(total) : 0);

/* A destroyed context releases everything in it. */
#define BEFORE_PRIMARY_RELEASED(device)
#define AFTER_PRIMARY_RELEASED(device)                                                             \
	if (c.outer && !result && cuda_device_primary_inactive(device))                            \
		cuda_cleared(&c, CUDA_DEVICE, device, TRACE_CLEAR_DEVICE, 0);
#define BEFORE_PRIMARY_RESET(device)
#define AFTER_PRIMARY_RESET(device)                                                                \
	if (c.outer)                                                                               \
		cuda_cleared(&c, CUDA_DEVICE, device, TRACE_CLEAR_DEVICE, 0);
#define BEFORE_CONTEXT_DESTROYED(context)
#define AFTER_CONTEXT_DESTROYED(context)                                                           \
	if (!result)                                                                               \
		cuda_device_context_destroyed(WORD(context));                                      \
	if (c.outer)                                                                               \
		cuda_cleared(&c, CUDA_DEVICE, 0, TRACE_CLEAR_CONTEXT, WORD(context));

/* Graphs. */
static void allocated_node(
    const struct cuda_call *c, gpu_graph graph, const struct gpu_node_alloc *a)
{
	allocated(
	    c, &(struct cuda_block){.kind = CUDA_GRAPH,
		   .flags = TRACE_SPACE_CAPTURED,
		   .device =
		       a && a->pool.location.type == GPU_LOCATION_DEVICE ? a->pool.location.id : -1,
		   .address = c->result || !a ? 0 : a->address,
		   .size = a ? a->size : 0,
		   .object = WORD(graph)});
}

#define BEFORE_ALLOC_NODE(graph, params)
#define AFTER_ALLOC_NODE(graph, params) allocated_node(&c, graph, IN(params));
#define BEFORE_FREE_NODE(graph, address)
#define AFTER_FREE_NODE(graph, address) AFTER_CALLED(-1, address, 0, OTHER)
#define BEFORE_NODE(graph, params)
#define AFTER_NODE(graph, params)                                                                  \
	if (IN(params) && (params)->type == GPU_NODE_MEM_ALLOC)                                    \
		allocated_node(&c, graph, &(params)->of.alloc);                                    \
	else if (IN(params) && (params)->type == GPU_NODE_MEM_FREE && !result)                     \
	AFTER_CALLED(-1, (params)->of.free, 0, OTHER)
#define BEFORE_LAUNCH()
#define AFTER_LAUNCH()                                                                             \
	if (c.outer)                                                                               \
		cuda_launched(&c);
#define BEFORE_GRAPH_DESTROYED(graph)
#define AFTER_GRAPH_DESTROYED(graph)                                                               \
	if (c.outer)                                                                               \
		cuda_graph_destroyed(&c, WORD(graph));

/* While a stream may be capturing, the driver is not queried. An end that is refused, for a wrong
 * stream or thread, leaves the capture open. Both are recorded: what is allocated in between stays
 * with the graph. The value is the number of launches so far. */
#define CAPTURED() AFTER_CALLED(-1, 0, cuda_launches(), OTHER)
#define BEFORE_CAPTURE_BEGIN() cuda_device_capture(1);
#define AFTER_CAPTURE_BEGIN()                                                                      \
	if (result)                                                                                \
		cuda_device_capture(-1);                                                           \
	else                                                                                       \
		CAPTURED()
#define BEFORE_CAPTURE_END()
#define AFTER_CAPTURE_END()                                                                        \
	if (!result || result == GPU_ERROR_CAPTURE_INVALIDATED ||                                  \
	    result == GPU_ERROR_CAPTURE_UNJOINED) {                                                \
		cuda_device_capture(-1);                                                           \
		CAPTURED()                                                                         \
	}

/* Look-ups: replaces the real result by a wrapper if the caller gets one. */
struct lookup {
	enum cuda_id id;
	gpu_result result;
	const char *name;
	void **out;
	int version;
	uint64_t flags;
	bool twin;
};

static void replace_lookup(const struct lookup *l, const void *caller)
{
	bool per_thread =
	    (l->flags & GPU_PROC_PER_THREAD) || (l->twin && !(l->flags & GPU_PROC_LEGACY));
	int saved = errno;

	if (cuda_self.label == l->id) /* a look-up by the runtime, which calls no other function */
		cuda_self.label = 0;
	if (l->result == GPU_SUCCESS && l->out && *l->out && l->name && cuda_caller_wants(caller))
		*l->out = cuda_wrapper_by_request(l->name, l->version, per_thread, *l->out);
	errno = saved;
}

#define BEFORE_LOOKUP(name, out, version, flags)
#define AFTER_LOOKUP(name, out, version, flags)                                                    \
	replace_lookup(                                                                            \
	    &(struct lookup){(enum cuda_id)id_, result, name, out, (int)(version), flags, twin_},  \
	    __builtin_return_address(0));

#define BEFORE_LABEL(size)
#define AFTER_LABEL(size) cuda_label_end(&c, result, result ? (uint64_t)(size) : 0);

/* --- wrappers --- */

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define TWIN_ONE false
#define TWIN_LEGACY false
#define TWIN_PER_THREAD true

#define ENTER_DRIVER cuda_begin
#define ENTER_RUNTIME cuda_label_begin
#define LEAVE_DRIVER(result) cuda_end(&c, result)
#define LEAVE_RUNTIME(result) (void)result

#define COPY(n, library, symbol, stream, parameters, arguments, effect)                            \
	static __attribute__((noinline)) gpu_result hook_##symbol##_##n parameters                 \
	{                                                                                          \
		enum { id_ = CUDA_##symbol, twin_ = TWIN_##stream };                               \
		struct cuda_call c;                                                                \
		gpu_result result;                                                                 \
		unsigned flags_ = TRACE_SPACE_STREAM; /* of asynchronous releases */               \
                                                                                                   \
		(void)twin_, (void)flags_;                                                         \
		ENTER_##library(&c, (enum cuda_id)id_, STACK_START());                             \
		BEFORE_##effect result = ((gpu_result(*) parameters)cuda_real[id_][n])arguments;   \
		LEAVE_##library(result);                                                           \
		AFTER_##effect return result;                                                      \
	}

/* 0 for rows with effect NONE, else 1: other EXISTS_ names are no macros and stay as they are. */
#define EXISTS_NONE ~, 0
#define SECOND_(a, b, ...) b
#define SECOND(...) SECOND_(__VA_ARGS__)
#define IF_0(...)
#define IF_1(...) __VA_ARGS__
#define WRAPPED(effect) CAT(IF_, SECOND(EXISTS_##effect, 1, ~))

#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	WRAPPED(effect)                                                                            \
	(COPY(0, library, symbol, stream, parameters, arguments, effect)                           \
		COPY(1, library, symbol, stream, parameters, arguments, effect)                    \
		    COPY(2, library, symbol, stream, parameters, arguments, effect))
#include "cuda/cuda_api.def"
#undef CUDA_API

void *const cuda_wrapper[CUDA_IDS][CUDA_COPIES] = {
#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	WRAPPED(effect)                                                                            \
	([CUDA_##symbol] = {                                                                       \
	     (void *)hook_##symbol##_0, (void *)hook_##symbol##_1, (void *)hook_##symbol##_2}, )
#include "cuda/cuda_api.def"
#undef CUDA_API
};
