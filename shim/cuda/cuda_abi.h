/*
 * cuda_abi.h - the types of CUDA's C interface that cuda_api.def needs, written from its public
 * documentation, so that building needs no toolkit. One binary serves CUDA 11 to 13, so fields are
 * named only if their layout is the same in all of them; tests/cuda/abi.cc compares sizes, offsets
 * and every row's prototype with the real headers that it finds.
 *
 * No function, no state. C11 and C++17. Can be included together with the real headers.
 */
#ifndef SHIM_CUDA_ABI_H
#define SHIM_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int gpu_result; /* CUresult and cudaError_t: 0 is success */
typedef uint64_t gpu_ptr; /* CUdeviceptr; unique over all devices of the process and the host */
typedef uint64_t gpu_handle; /* CUmemGenericAllocationHandle: memory without an address */
typedef int gpu_device; /* ordinal of a device */
typedef void *gpu_object; /* any opaque pointer of the driver */
typedef gpu_object gpu_context, gpu_stream, gpu_pool, gpu_array, gpu_graph, gpu_node, gpu_module;

/* An argument whose type, but not its register, differs between major versions. */
typedef uint64_t gpu_word;

enum {
	GPU_SUCCESS = 0,
	GPU_ERROR_INVALID_VALUE = 1,
	GPU_ERROR_OUT_OF_MEMORY = 2, /* the same number in the driver and in the runtime */
	GPU_ERROR_NOT_INITIALIZED = 3,
	GPU_ERROR_DEINITIALIZED = 4,
	GPU_ERROR_NO_DEVICE = 100,
	GPU_ERROR_INVALID_CONTEXT = 201,
	GPU_ERROR_NOT_FOUND = 500,
	GPU_ERROR_NOT_PERMITTED = 800,
	GPU_ERROR_NOT_SUPPORTED = 801,
	GPU_ERROR_CAPTURE_UNSUPPORTED = 900,
	GPU_ERROR_CAPTURE_INVALIDATED = 901,
	GPU_ERROR_CAPTURE_UNJOINED = 904,
};

/* flags of cuGetProcAddress */
enum { GPU_PROC_DEFAULT = 0, GPU_PROC_LEGACY = 1, GPU_PROC_PER_THREAD = 2 };

enum { GPU_LOCATION_DEVICE = 1, GPU_LOCATION_HOST = 2, GPU_LOCATION_HOST_NUMA = 3 };

struct gpu_location {
	int type, id;
};

struct gpu_alloc_prop { /* CUmemAllocationProp */
	int type, handle_types;
	struct gpu_location location;
	void *win32;
	uint8_t compression, rdma;
	uint16_t usage;
	uint8_t reserved[4];
};

struct gpu_access { /* CUmemAccessDesc */
	struct gpu_location location;
	int flags;
};

struct gpu_pool_props { /* CUmemPoolProps, cudaMemPoolProps */
	int type, handle_types;
	struct gpu_location location;
	void *win32;
	size_t max_size; /* reserved before 12.2 */
	uint16_t usage;
	uint8_t reserved[54];
};

enum { /* CUmemPool_attribute, cudaMemPoolAttr */
	GPU_POOL_RELEASE_THRESHOLD = 4,
	GPU_POOL_RESERVED_CURRENT = 5,
	GPU_POOL_RESERVED_HIGH = 6,
	GPU_POOL_USED_CURRENT = 7,
	GPU_POOL_USED_HIGH = 8,
};

enum { /* CUgraphMem_attribute */
	GPU_GRAPH_USED_CURRENT = 0,
	GPU_GRAPH_USED_HIGH = 1,
	GPU_GRAPH_RESERVED_CURRENT = 2,
	GPU_GRAPH_RESERVED_HIGH = 3,
};

struct gpu_pool_export { /* CUmemPoolPtrExportData */
	uint8_t reserved[64];
};

struct gpu_ipc_handle { /* CUipcMemHandle; passed by value */
	uint8_t reserved[64];
};

struct gpu_array_desc { /* CUDA_ARRAY_DESCRIPTOR */
	size_t width, height;
	int format;
	unsigned channels;
};

struct gpu_array3d_desc { /* CUDA_ARRAY3D_DESCRIPTOR */
	size_t width, height, depth;
	int format;
	unsigned channels, flags;
};

struct gpu_external_desc { /* CUDA_EXTERNAL_MEMORY_HANDLE_DESC */
	int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
		const void *nvscibuf;
	} handle;
	uint64_t size;
	unsigned flags, reserved[16];
};

struct gpu_external_buffer { /* CUDA_EXTERNAL_MEMORY_BUFFER_DESC */
	uint64_t offset, size;
	unsigned flags, reserved[16];
};

struct gpu_external_mipmap { /* CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC */
	uint64_t offset;
	struct gpu_array3d_desc array;
	unsigned levels, reserved[16];
};

struct gpu_node_alloc { /* CUDA_MEM_ALLOC_NODE_PARAMS, cudaMemAllocNodeParams */
	struct gpu_pool_props pool;
	const struct gpu_access *access;
	size_t access_count, size;
	gpu_ptr address; /* out */
};

enum { GPU_NODE_MEM_ALLOC = 10, GPU_NODE_MEM_FREE = 11 };

struct gpu_node_params { /* CUgraphNodeParams, cudaGraphNodeParams */
	int type, reserved0[3];
	union {
		long long reserved1[29];
		struct gpu_node_alloc alloc;
		gpu_ptr free;
	} of;
	long long reserved2;
};

struct gpu_multicast_prop { /* CUmulticastObjectProp */
	unsigned devices;
	size_t size;
	unsigned long long handle_types, flags;
};

struct gpu_uuid {
	uint8_t bytes[16];
};

/* the runtime's own */
struct gpu_extent { /* cudaExtent; passed by value */
	size_t width, height, depth;
};

struct gpu_pitched { /* cudaPitchedPtr */
	void *address;
	size_t pitch, width, height;
};

struct gpu_channel { /* cudaChannelFormatDesc: bits of each component */
	int x, y, z, w, kind;
};

#ifdef __cplusplus
#define GPU_ASSERT(c) static_assert(c, #c)
#else
#define GPU_ASSERT(c) _Static_assert(c, #c)
#endif
GPU_ASSERT(sizeof(struct gpu_alloc_prop) == 32);
GPU_ASSERT(offsetof(struct gpu_alloc_prop, location) == 8);
GPU_ASSERT(sizeof(struct gpu_access) == 12);
GPU_ASSERT(sizeof(struct gpu_pool_props) == 88);
GPU_ASSERT(sizeof(struct gpu_array_desc) == 24);
GPU_ASSERT(sizeof(struct gpu_array3d_desc) == 40);
GPU_ASSERT(sizeof(struct gpu_external_desc) == 104);
GPU_ASSERT(offsetof(struct gpu_external_desc, size) == 24);
GPU_ASSERT(sizeof(struct gpu_external_buffer) == 88);
GPU_ASSERT(sizeof(struct gpu_external_mipmap) == 120);
GPU_ASSERT(sizeof(struct gpu_node_alloc) == 120);
GPU_ASSERT(offsetof(struct gpu_node_alloc, size) == 104);
GPU_ASSERT(sizeof(struct gpu_node_params) == 256);
GPU_ASSERT(offsetof(struct gpu_node_params, of) == 16);
GPU_ASSERT(sizeof(struct gpu_multicast_prop) == 32);
#undef GPU_ASSERT

#endif
