/*
 * driver.h - what the files of the driver share.
 */
#ifndef SIMGPU_DRIVER_H
#define SIMGPU_DRIVER_H

#include <stdint.h>

#include "simgpu/pool.h"
#include "simgpu/state.h"

/* Up, and the model locked; else the result to answer with, unlocked. And the way out. */
int driver_begin(void);
int driver_end(int rc);

/* Begun, a context current, no capture that forbids it: the lock is held on SIM_OK only. */
int driver_begin_unsafe(struct context **context);

/* All that was put on the current device has happened. Takes the lock itself. */
int driver_synchronised(void);

void device_uuid(int device, uint8_t out[16]);

#endif
