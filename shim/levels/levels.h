/*
 * levels.h - how much memory the process and its cgroup use, read from /proc and the cgroup's
 * files by raw system calls, and the facts about limits. No descriptor stays open.
 */
#ifndef SHIM_LEVELS_H
#define SHIM_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/record_fields.h" /* struct level */

#define LEVELS_MAX 40

/* Finds the cgroup; writes the INFO about limits. Once for each process, also after fork. */
void levels_init(void);

/* RSS, which comes first, virtual size, cgroup usage; `all`, as it is wanted at a failure, and when
 * one of these has grown by an eighth since: also limits, what RSS and usage are made up of, and
 * the cgroup's events. The number filled in. */
unsigned levels_read(struct level *out, bool all);

/* How many mappings there are, and may be. For a refused call only: each mapping takes the kernel
 * about a microsecond; so it is done for a fiftieth of the time at most. The number filled in, at
 * most LEVELS_MAPPINGS. */
#define LEVELS_MAPPINGS 2
unsigned levels_mappings(struct level *out);

/* The size of the address space, 0 when it cannot be read. */
uint64_t levels_vsize(void);

#endif
