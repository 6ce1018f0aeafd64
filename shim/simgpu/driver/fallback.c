/*
 * fallback.c - all other entry points: they return "not supported".
 */
#include "simgpu/api.h"
#include "simgpu/device/memory.h"

/* Weak: a definition elsewhere replaces it, under both names. */
#define FALLBACK(symbol, parameters)                                                               \
	__attribute__((weak)) gpu_result symbol parameters                                         \
	{                                                                                          \
		return SIM_NOT_SUPPORTED;                                                          \
	}                                                                                          \
	extern __typeof__(symbol) self_##symbol                                                    \
	    __attribute__((weak, alias(#symbol), visibility("hidden")));

#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	FALLBACK(symbol, parameters)
#include "cuda/cuda_api.def"
#undef CUDA_API
#define DRIVER_API(symbol, asked, from, to, parameters) FALLBACK(symbol, parameters)
#define DRIVER_API_PTSZ(symbol, asked, from, to, parameters)                                       \
	FALLBACK(symbol, parameters) FALLBACK(symbol##_ptsz, parameters)
#include "simgpu/driver/driver.def"
#undef DRIVER_API
#undef DRIVER_API_PTSZ
