/*
 * runtime.h - how the runtime's entry points begin and end. The runtime has no memory of its own:
 * every allocation is a call of the driver's exported functions.
 */
#ifndef SIMGPU_RUNTIME_H
#define SIMGPU_RUNTIME_H

#include "simgpu/api.h"
#include "simgpu/device/state.h"

/* Initialises the driver. Returns the result for the program. */
int runtime_up(void);
/* Also makes the primary context of the thread's device current. */
int runtime_enter(void);

/* Ends an entry point: stores the error for cudaGetLastError(); returns rc. */
int runtime_end(int rc);

/* Define an entry point that makes a call of the driver's. */
#define FORWARD_AS(define, enter, symbol, parameters, call)                                        \
	define(symbol, parameters)                                                                 \
	{                                                                                          \
		int rc = enter();                                                                  \
                                                                                                   \
		return runtime_end(rc ? rc : (call));                                              \
	}
#define FORWARD(symbol, parameters, call) FORWARD_AS(API, runtime_enter, symbol, parameters, call)
#define FORWARD_PTSZ(symbol, parameters, call)                                                     \
	FORWARD_AS(API_PTSZ, runtime_enter, symbol, parameters, call)
#define FORWARD_PTDS(symbol, parameters, call)                                                     \
	FORWARD_AS(API_PTDS, runtime_enter, symbol, parameters, call)

/* Returns the runtime's major version for which the code at this return address was built. */
int runtime_major(const void *caller);
#define CALLER_MAJOR() runtime_major(__builtin_return_address(0))

#endif
