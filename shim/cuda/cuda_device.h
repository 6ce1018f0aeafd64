/*
 * cuda_device.h - the questions that are put to the driver, and when that is allowed: with a
 * context, outside captures, before the process ends, and not in a child that inherited a context.
 * Every answer is one of the driver's own functions, found in the module that the wrapped one lies
 * in; none of them synchronises or allocates.
 */
#ifndef SHIM_CUDA_DEVICE_H
#define SHIM_CUDA_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/cuda_abi.h"

/* A function of libcuda was wrapped: its module has the others. */
void cuda_device_found(const void *function);

/* The calling thread's context and its device; -1 and 0 when there is none. Cheap. */
int cuda_device_now(uint64_t *context);

/* May the driver be asked about memory by this thread, now? Of `device`: its context has to be the
 * current one; -1: any. */
bool cuda_device_may_ask(int device);

/* Free and total memory of the current context's device. Only when cuda_device_may_ask(). */
bool cuda_device_memory(uint64_t *available, uint64_t *total);

/* The same of a device for which a context was just made, or asked for. Where that is not the
 * current one it is made so for the question, once for each device. */
bool cuda_device_memory_in(int device, uint64_t context, uint64_t *available, uint64_t *total);

/* Reserved and used bytes of a pool; pool 0: the device's current one. */
bool cuda_device_pool(int device, uint64_t pool, uint64_t *reserved, uint64_t *used);
bool cuda_device_graphs(int device, uint64_t *reserved, uint64_t *used);

/* Does this stream capture? Asked only while some stream may. */
bool cuda_device_captures(uint64_t stream);
void cuda_device_capture(int change);

/* Is the device's primary context not there? False when that cannot be said. */
bool cuda_device_primary_gone(int device);
void cuda_device_context_gone(uint64_t context);

/* What was seen last, whoever asked: for those who must not. False: nothing yet. */
void cuda_device_seen(int device, uint64_t available, uint64_t total);
bool cuda_device_last(int device, uint64_t *available, uint64_t *total);

/* In the child of a fork. */
void cuda_device_forked(void);

#endif
