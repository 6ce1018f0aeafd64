/*
 * machine.h - accounts for device memory by process, shared by the processes of one simulated
 * machine through a file of a few pages. Memory of a dead process is free again, however it died.
 *
 * Any thread and process; holds a robust lock in the file for microseconds.
 */
#ifndef SIMGPU_MACHINE_H
#define SIMGPU_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "simgpu/device/config.h"

#define MACHINE_PROCESSES 512 /* the most at one time */

struct machine_process {
	int pid;
	uint64_t bytes;
};

/* Joins the machine that `config` names, or makes it. If it exists with other devices, `config` is
 * changed to those. False: no file can be shared, so this process has the devices to itself; `why`
 * says so in printable words. */
bool machine_join(struct config *config, char why[160]);
/* Frees all that this process has reserved. */
void machine_leave(void);
/* Forgets the parent's reservations, in the child of a fork. */
void machine_after_fork(void);

/* Reserves bytes of a device for this process, all or nothing. */
bool machine_reserve(int device, uint64_t bytes);
void machine_release(int device, uint64_t bytes);
void machine_level(int device, uint64_t *free, uint64_t *total);

/* Returns how many processes use the device, and writes at most `room` of them to `out`. */
int machine_processes(int device, struct machine_process *out, int room);

/* Returns a number that no other call on this machine returns, in any process. */
uint64_t machine_unique_number(void);

#endif
