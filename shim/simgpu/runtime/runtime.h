/*
 * runtime.h - what the files of the runtime share. The runtime holds no memory of its own: every
 * allocation is a call of the driver's exported functions.
 */
#ifndef SIMGPU_RUNTIME_H
#define SIMGPU_RUNTIME_H

#include "simgpu/api.h"
#include "simgpu/device/state.h"

/* The driver is up; with a context, the thread's device has its primary one current. Results as the
 * program gets them. */
int runtime_up(void);
int runtime_enter(void);

/* What every entry point ends with: keeps the error for cudaGetLastError(). */
int runtime_end(int rc);

/* Which major of the runtime's interface the code at this return address was built for. */
int runtime_major(const void *caller);
#define CALLER_MAJOR() runtime_major(__builtin_return_address(0))

#endif
