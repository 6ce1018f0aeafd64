/*
 * cuda_device.h - queries the driver, when that is allowed: with a context, outside captures,
 * before the process ends, and not in a child that inherited a context. Uses functions of the
 * driver from the module of the wrapped ones; none of them synchronises or allocates.
 */
#ifndef SHIM_CUDA_DEVICE_H
#define SHIM_CUDA_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/cuda_abi.h"

/* Finds the functions for queries in the module of a wrapped function of libcuda. */
void cuda_device_find_functions(const void *function);

/* Returns the device of the calling thread's context, and *context; -1 and 0: there is none. Cheap.
 */
int cuda_device_now(uint64_t *context);

/* Says whether this thread may query memory now. The current context must be that of `device`; -1:
 * of any device. */
bool cuda_device_may_ask(int device);

/* Queries free and total memory of the current context's device. Pre: cuda_device_may_ask(). */
bool cuda_device_memory(uint64_t *available, uint64_t *total);

/* Queries the same of a device whose context was just created or returned. If it is not the current
 * one, makes it current for the query, once for each device. */
bool cuda_device_memory_in(int device, uint64_t context, uint64_t *available, uint64_t *total);

/* Queries reserved and used bytes of a pool (0: the device's current one), or of graphs. */
bool cuda_device_pool(int device, uint64_t pool, uint64_t *reserved, uint64_t *used);
bool cuda_device_graphs(int device, uint64_t *reserved, uint64_t *used);

/* Says whether this stream captures. Queries the driver only while some stream may capture. */
bool cuda_device_captures(uint64_t stream);
/* Counts a capture that begins (1) or ends (-1). */
void cuda_device_capture(int change);

/* True: the device's primary context is not active. False also if that is unknown. */
bool cuda_device_primary_inactive(int device);
void cuda_device_context_destroyed(uint64_t context);

/* Stores and returns the last known memory of a device, for callers that may not query. False: none
 * is known. */
void cuda_device_set_last_memory(int device, uint64_t available, uint64_t total);
bool cuda_device_last_memory(int device, uint64_t *available, uint64_t *total);

/* Stops queries if the parent had a context, in the child of a fork. */
void cuda_device_forked(void);

#endif
