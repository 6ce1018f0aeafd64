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

/* Returns the runtime's major version for which the code at this return address was built. */
int runtime_major(const void *caller);
#define CALLER_MAJOR() runtime_major(__builtin_return_address(0))

#endif
