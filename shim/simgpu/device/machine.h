/*
 * machine.h - how much of each device's memory who uses, shared by the processes of one simulated
 * machine through a file of a few pages. What a process used comes back when it is gone, however
 * it went.
 *
 * Any thread and process; a robust lock in the file, held for microseconds.
 */
#ifndef SIMGPU_MACHINE_H
#define SIMGPU_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "simgpu/device/config.h"

#define MACHINE_PROCESSES 512 /* at most, at one time */

struct machine_process {
	int pid;
	uint64_t bytes;
};

/* Joins the machine that `config` names, or makes it. When another made it with other devices,
 * theirs hold and `config` is changed to them. False: no file can be shared, and this process has
 * the devices to itself; `why` says so in words that may be printed. */
bool machine_join(struct config *config, char why[160]);
/* What this process holds is given back. In a child of fork(), which holds nothing: forgets. */
void machine_leave(void);
void machine_after_fork(void);

/* Takes bytes of a device for this process, all or nothing. */
bool machine_take(int device, uint64_t bytes);
void machine_give(int device, uint64_t bytes);
void machine_level(int device, uint64_t *free, uint64_t *total);

/* Who uses the device now: how many there are, of which at most `room` are written to `out`. */
int machine_processes(int device, struct machine_process *out, int room);

/* A number that no other process of the machine has got, or gets. */
uint64_t machine_number(void);

#endif
