/*
 * levels.h - how much memory the process and its cgroup use, read by raw system calls from /proc
 * and the cgroup's files, and facts about limits. Keeps no descriptor open.
 */
#ifndef SHIM_LEVELS_H
#define SHIM_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/record_fields.h" /* struct level */

#define LEVELS_MAX 40

/* Add a level to `out`, which holds `n`. Returns n + 1. */
static inline unsigned level_put(struct level *out, unsigned n, uint32_t key, uint64_t value)
{
	out[n] = (struct level){key, value};
	return n + 1;
}

/* Find the cgroup and write the facts about limits. Once for each process, also after a fork. */
void levels_init(void);

/* Read RSS, which comes first, virtual size and cgroup usage. `all`, for a failure, or growth by an
 * eighth since the last time: also limits, the parts of RSS and usage, and the cgroup's events.
 * Fills in up to LEVELS_MAX and returns the number. */
unsigned levels_read(struct level *out, bool all);

/* Count the mappings and read their limit, and what the kernel has promised to all processes where
 * it holds to a limit of that. Only after a refused call: the kernel needs about a microsecond for
 * each mapping, so this takes at most a fiftieth of the time. Returns the number filled in, at most
 * LEVELS_REFUSED. */
#define LEVELS_REFUSED 4
unsigned levels_refused(struct level *out);

/* Return the size of the address space, bytes; 0: it cannot be read. */
uint64_t levels_vsize(void);

#endif
