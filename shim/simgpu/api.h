/*
 * api.h - prototypes of the entry points, from cuda_api.def (memory) and simgpu/driver/driver.def
 * (the rest of the driver), and macros that define one. Written from the public documentation of
 * CUDA's interfaces.
 *
 * The runtime calls the driver by its exported names through the PLT, as a program does, so that a
 * library in front of the driver sees those calls. The driver itself calls no exported name.
 */
#ifndef SIMGPU_API_H
#define SIMGPU_API_H

#include "cuda/cuda_abi.h"

#define EXPORT __attribute__((visibility("default")))

/* Defines an exported function, with the prototype that the compiler wants before it. */
#define EXPORTED(type, symbol, parameters)                                                         \
	EXPORT type symbol parameters;                                                             \
	type symbol parameters

/* Defines an entry point with a hidden second name, self_X: cuGetProcAddress returns that address,
 * whatever library precedes ours. */
#define API(symbol, parameters)                                                                    \
	EXPORT gpu_result symbol parameters;                                                       \
	extern __typeof__(symbol) self_##symbol                                                    \
	    __attribute__((alias(#symbol), visibility("hidden")));                                 \
	gpu_result symbol parameters

/* Also defines the twin for the per-thread default stream, which is the same function. */
#define API_PTSZ(symbol, parameters)                                                               \
	EXPORT gpu_result symbol parameters;                                                       \
	extern __typeof__(symbol) symbol##_ptsz                                                    \
	    __attribute__((alias(#symbol), visibility("default")));                                \
	extern __typeof__(symbol) self_##symbol##_ptsz                                             \
	    __attribute__((alias(#symbol), visibility("hidden")));                                 \
	API(symbol, parameters)

/* The same for functions of the runtime whose twins end in _ptds. */
#define API_PTDS(symbol, parameters)                                                               \
	EXPORT gpu_result symbol parameters;                                                       \
	extern __typeof__(symbol) symbol##_ptds                                                    \
	    __attribute__((alias(#symbol), visibility("default")));                                \
	API(symbol, parameters)

/* Define an entry point that returns the value of an expression. */
#define API_RETURNS(symbol, parameters, value)                                                     \
	API(symbol, parameters)                                                                    \
	{                                                                                          \
		return value;                                                                      \
	}
#define API_PTSZ_RETURNS(symbol, parameters, value)                                                \
	API_PTSZ(symbol, parameters)                                                               \
	{                                                                                          \
		return value;                                                                      \
	}

#define ANY 0
#define VARIES 0
#define CUDA_API(library, symbol, asked, from, to, stream, class, parameters, arguments, effect)   \
	EXPORT gpu_result symbol parameters;
#include "cuda/cuda_api.def"
#undef CUDA_API
#define DRIVER_API(symbol, asked, from, to, parameters) EXPORT gpu_result symbol parameters;
#define DRIVER_API_PTSZ(symbol, asked, from, to, parameters)                                       \
	EXPORT gpu_result symbol parameters;                                                       \
	EXPORT gpu_result symbol##_ptsz parameters;
#include "simgpu/driver/driver.def"
#undef DRIVER_API
#undef DRIVER_API_PTSZ
#undef ANY
#undef VARIES

#endif
