/*
 * api.h - the entry points: prototypes of them, from cuda_api.def (memory) and simgpu/driver.def
 * (the rest of the driver), and how one is defined. Written from the public
 * documentation of CUDA's interfaces.
 *
 * The runtime calls the driver by its exported names, through the PLT, as a program does: what
 * stands in front of the driver sees those calls. Inside the driver nothing calls an exported name.
 */
#ifndef SIMGPU_API_H
#define SIMGPU_API_H

#include "cuda/cuda_abi.h"

#define EXPORT __attribute__((visibility("default")))

/* Every entry point has a hidden second name, self_X: the address that cuGetProcAddress answers
 * with, whatever stands in front of X. */
#define API(symbol, parameters)                                                                    \
	EXPORT gpu_result symbol parameters;                                                       \
	extern __typeof__(symbol) self_##symbol                                                    \
	    __attribute__((alias(#symbol), visibility("hidden")));                                 \
	gpu_result symbol parameters

/* With its twin for the per-thread default stream, which is the same here. */
#define API_PTSZ(symbol, parameters)                                                               \
	EXPORT gpu_result symbol parameters;                                                       \
	extern __typeof__(symbol) symbol##_ptsz                                                    \
	    __attribute__((alias(#symbol), visibility("default")));                                \
	extern __typeof__(symbol) self_##symbol##_ptsz                                             \
	    __attribute__((alias(#symbol), visibility("hidden")));                                 \
	API(symbol, parameters)

/* The same for a runtime whose per-thread names end in _ptds. */
#define API_PTDS(symbol, parameters)                                                               \
	EXPORT gpu_result symbol parameters;                                                       \
	extern __typeof__(symbol) symbol##_ptds                                                    \
	    __attribute__((alias(#symbol), visibility("default")));                                \
	API(symbol, parameters)

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
