/*
 * libraries.h - defines an entry point of another CUDA library: it returns an int, that library's
 * result number; 0 is success.
 */
#ifndef SIMGPU_LIBRARIES_H
#define SIMGPU_LIBRARIES_H

#include "simgpu/api.h"

#define LIBRARY(symbol, parameters) EXPORTED(int, symbol, parameters)

/* Defines one that returns the value of an expression. */
#define LIBRARY_RETURNS(symbol, parameters, value)                                                 \
	LIBRARY(symbol, parameters)                                                                \
	{                                                                                          \
		return value;                                                                      \
	}

#endif
