/*
 * libraries.h - entry points of CUDA's other libraries: each returns an int, its library's own
 * number, 0 being success.
 */
#ifndef SIMGPU_LIBRARIES_H
#define SIMGPU_LIBRARIES_H

#include "simgpu/api.h"

#define LIBRARY(symbol, parameters)                                                                \
	EXPORT int symbol parameters;                                                              \
	int symbol parameters

#endif
