/*
 * driver.h - how the driver's entry points begin and end.
 */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#include <stdint.h>

#include "simgpu/api.h"
#include "simgpu/device/pool.h"
#include "simgpu/device/state.h"
#include "simgpu/device/stream.h"

/* Begins a call. SIM_OK: the device is up and the model locked; else the result of the call, and
 * nothing is locked. */
int driver_begin(void);
/* Unlocks the model; returns rc. */
int driver_end(int rc);

/* Begin a call and find its subject. The model is locked on SIM_OK only. */
int driver_begin_unsafe(struct context **context); /* the current one; no capture may forbid it */
int driver_begin_device(gpu_device ordinal, int *device);
int driver_begin_stream(gpu_stream handle, struct stream **stream);
int driver_begin_block(gpu_ptr address, struct block **block); /* that contains the address */
/* NULL: *rc is the result of the call, and nothing is locked. */
void *driver_begin_object(void *handle, enum object_kind kind, int *rc);

/* Ends a call that waits for all work on the device. */
int driver_end_synchronised(int device);
/* Ends a call on a capturing stream by adding a node with the type and arguments of `what`. */
int driver_end_captured(struct stream *stream, const struct node *what);

void device_uuid(int device, uint8_t out[16]);

#endif
