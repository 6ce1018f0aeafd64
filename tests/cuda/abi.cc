/*
 * abi.cc - compares shim/cuda/cuda_abi.h and the prototypes of shim/cuda/cuda_api.def, and those of
 * the simulated device's other calls, with the real headers of one CUDA version, at compile time:
 * the size of each argument, and whether it is a pointer, an integer or a structure, which is what
 * decides how it is passed. Rows that these headers do not declare are passed over; the count of
 * those compared is printed.
 *
 * The real headers are included inside a namespace, whose enclosing one declares every name of the
 * table as "absent": so an undeclared name is found there.
 */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda_abi.h"

/* The driver's calls that do not concern memory; functions that only return "not supported" are
 * written without parameters. */
#define DRIVER_API_PTSZ(symbol, asked, from, to, parameters)                                       \
	DRIVER_API(symbol, asked, from, to, parameters)

namespace ours
{
#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	gpu_result symbol parameters;
#include "cuda/cuda_api.def"
#undef CUDA_API
#define DRIVER_API(symbol, asked, from, to, parameters) gpu_result symbol parameters;
#include "simgpu/driver/driver.def"
#undef DRIVER_API
} // namespace ours

namespace outer
{
struct absent {
};
#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	static absent symbol __attribute__((unused));
#include "cuda/cuda_api.def"
#undef CUDA_API
#define DRIVER_API(symbol, asked, from, to, parameters)                                            \
	static absent symbol __attribute__((unused));
#include "simgpu/driver/driver.def"
#undef DRIVER_API

namespace real
{
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#undef __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

/* How an argument is passed. */
template <class T> struct how {
	static constexpr int kind = std::is_pointer<T>::value				   ? 1
				    : std::is_integral<T>::value || std::is_enum<T>::value ? 2
				    : std::is_class<T>::value				   ? 3
											   : 4;
	/* what is pointed to: a structure's size must be known to both, or to neither */
	static constexpr int size = sizeof(T);
};

template <class A, class B> struct same {
	static constexpr bool value = how<A>::kind == how<B>::kind && how<A>::size == how<B>::size;
};

template <class F, class G> struct alike {
	static constexpr bool value = false;
};
template <class R, class... A, class S, class... B> struct alike<R(A...), S(B...)> {
	template <bool... b> struct all {
	};
	template <bool count, class Dummy> struct each {
		static constexpr bool value = false;
	};
	template <class Dummy> struct each<true, Dummy> {
		static constexpr bool value = std::is_same<all<true, same<A, B>::value...>,
		    all<same<A, B>::value..., true>>::value;
	};
	static constexpr bool value =
	    same<R, S>::value && each<sizeof...(A) == sizeof...(B), void>::value;
};

#define DECLARED(symbol) (!std::is_same<decltype(symbol), absent>::value)

/* VARIES: the types differ between majors, the registers do not. */
#define FITS(symbol, to)                                                                           \
	(!DECLARED(symbol) || #to[0] == 'V' ||                                                     \
	    alike<std::remove_reference<decltype(symbol)>::type, decltype(ours::symbol)>::value)

#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	static_assert(FITS(symbol, to), #symbol " has another prototype");
#include "cuda/cuda_api.def"
#undef CUDA_API
#define DRIVER_API(symbol, asked, from, to, parameters)                                            \
	static_assert(sizeof(#parameters) == sizeof("(void)") || FITS(symbol, to),                 \
	    #symbol " has another prototype");
#include "simgpu/driver/driver.def"
#undef DRIVER_API

static int compared()
{
	int n = 0;
#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	n += DECLARED(symbol);
#include "cuda/cuda_api.def"
#undef CUDA_API
#define DRIVER_API(symbol, asked, from, to, parameters) n += DECLARED(symbol);
#include "simgpu/driver/driver.def"
#undef DRIVER_API
	return n;
}

#define SIZE(theirs, us) static_assert(sizeof(theirs) == sizeof(struct us), #theirs)
#define PLACE(theirs, member, us, our_member)                                                      \
	static_assert(                                                                             \
	    offsetof(theirs, member) == offsetof(struct us, our_member), #theirs "." #member)
SIZE(CUmemLocation, gpu_location);
PLACE(CUmemLocation, id, gpu_location, id);
SIZE(CUmemAllocationProp, gpu_alloc_prop);
PLACE(CUmemAllocationProp, location, gpu_alloc_prop, location);
SIZE(CUmemAccessDesc, gpu_access);
SIZE(CUmemPoolProps, gpu_pool_props);
PLACE(CUmemPoolProps, location, gpu_pool_props, location);
SIZE(cudaMemPoolProps, gpu_pool_props);
SIZE(CUmemPoolPtrExportData, gpu_pool_export);
SIZE(CUipcMemHandle, gpu_ipc_handle);
SIZE(cudaIpcMemHandle_t, gpu_ipc_handle);
SIZE(CUDA_ARRAY_DESCRIPTOR, gpu_array_desc);
PLACE(CUDA_ARRAY_DESCRIPTOR, NumChannels, gpu_array_desc, channels);
SIZE(CUDA_ARRAY3D_DESCRIPTOR, gpu_array3d_desc);
PLACE(CUDA_ARRAY3D_DESCRIPTOR, NumChannels, gpu_array3d_desc, channels);
SIZE(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, gpu_external_desc);
PLACE(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size, gpu_external_desc, size);
SIZE(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, gpu_external_buffer);
PLACE(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size, gpu_external_buffer, size);
SIZE(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, gpu_external_mipmap);
PLACE(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, numLevels, gpu_external_mipmap, levels);
SIZE(CUDA_MEM_ALLOC_NODE_PARAMS, gpu_node_alloc);
PLACE(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize, gpu_node_alloc, size);
PLACE(CUDA_MEM_ALLOC_NODE_PARAMS, dptr, gpu_node_alloc, address);
SIZE(cudaMemAllocNodeParams, gpu_node_alloc);
PLACE(cudaMemAllocNodeParams, bytesize, gpu_node_alloc, size);
SIZE(cudaExtent, gpu_extent);
SIZE(cudaPitchedPtr, gpu_pitched);
PLACE(cudaPitchedPtr, pitch, gpu_pitched, pitch);
SIZE(cudaChannelFormatDesc, gpu_channel);
SIZE(CUuuid, gpu_uuid);
static_assert((int)CUDA_ERROR_OUT_OF_MEMORY == (int)GPU_ERROR_OUT_OF_MEMORY, "");
static_assert((int)cudaErrorMemoryAllocation == (int)GPU_ERROR_OUT_OF_MEMORY, "");
static_assert((int)CUDA_ERROR_INVALID_CONTEXT == (int)GPU_ERROR_INVALID_CONTEXT, "");
static_assert((int)CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT == (int)GPU_POOL_RESERVED_CURRENT, "");
static_assert((int)CU_MEMPOOL_ATTR_USED_MEM_CURRENT == (int)GPU_POOL_USED_CURRENT, "");
static_assert((int)CU_MEMPOOL_ATTR_RELEASE_THRESHOLD == (int)GPU_POOL_RELEASE_THRESHOLD, "");
static_assert((int)CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT == (int)GPU_GRAPH_RESERVED_CURRENT, "");
static_assert((int)CU_MEM_LOCATION_TYPE_DEVICE == (int)GPU_LOCATION_DEVICE, "");
static_assert((int)CU_GRAPH_NODE_TYPE_MEM_ALLOC == (int)GPU_NODE_MEM_ALLOC, "");
static_assert((int)CU_GRAPH_NODE_TYPE_MEM_FREE == (int)GPU_NODE_MEM_FREE, "");
#if CUDA_VERSION >= 12010
SIZE(CUmulticastObjectProp, gpu_multicast_prop);
PLACE(CUmulticastObjectProp, size, gpu_multicast_prop, size);
#endif
#if CUDA_VERSION >= 12020
SIZE(CUgraphNodeParams, gpu_node_params);
PLACE(CUgraphNodeParams, alloc, gpu_node_params, of);
PLACE(CUmemPoolProps, maxSize, gpu_pool_props, max_size);
#endif
} // namespace real
} // namespace outer

int main()
{
	int n = outer::real::compared();

	printf("CUDA %d: %d prototypes\n", CUDA_VERSION, n);
	/* a header set whose names we no longer find must not pass for a comparison */
	return n < 250;
}
