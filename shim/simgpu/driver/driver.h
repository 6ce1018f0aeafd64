/*
 * driver.h - what the files of the driver share.
 */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#include <stdint.h>

#include "simgpu/api.h"
#include "simgpu/device/pool.h"
#include "simgpu/device/state.h"
#include "simgpu/device/stream.h"

/* Up, and the model locked; else the result to answer with, unlocked. And the way out. */
int driver_begin(void);
int driver_end(int rc);

/* The same, with what the call is about: the lock is held on SIM_OK only. */
int driver_begin_unsafe(struct context **context); /* one is current, no capture forbids it */
int driver_begin_device(gpu_device ordinal, int *device);
int driver_begin_stream(gpu_stream handle, struct stream **stream);
int driver_begin_block(gpu_ptr address, struct block **block); /* that holds the address */
/* NULL: *rc is the answer, and nothing is locked. */
void *driver_begin_object(void *handle, enum object_kind kind, int *rc);

/* The end of a call on a capturing stream: a node with the type and arguments of `what`. */
int driver_captured(struct stream *stream, const struct node *what);

/* All that was put on the current device has happened. Takes the lock itself. */
int driver_synchronised(void);

void device_uuid(int device, uint8_t out[16]);

#endif
