/*
 * shm.h - file systems of a fixed size with their files in memory (/dev/shm), if the process maps
 * files there or was refused space: how much is free, how much is mapped, and how much of the
 * mapped part may be unwritten.
 */
#ifndef ANALYZER_MODEL_SHM_H
#define ANALYZER_MODEL_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"

struct shm_volume {
	uint64_t device; /* its number from stat() */
	uint64_t total, free, time_ns; /* the latest seen */
	uint64_t others; /* used there before the process mapped anything */
	uint64_t mapped; /* by the process, now */
	uint64_t pending; /* the most of it that had no memory yet when last seen */
	const char *name; /* of the latest mapped file; NULL: none */
};
#define SHM_VOLUMES 8u /* further ones are not kept */

struct shm {
	struct shm_volume list[SHM_VOLUMES];
	uint32_t count;
	bool untold; /* a file of /dev/shm was mapped, and its free space is unknown */
};

/* Read an event's levels; call it before a MAP counts. Returns 1 + index; 0: no such level. */
uint32_t shm_note(struct shm *s, const struct event *e);
/* Add `change` mapped bytes to that number; 0: none. */
void shm_moved(struct shm *s, uint32_t number, int64_t change);

/* NULL: unknown device. */
const struct shm_volume *shm_find(const struct shm *s, uint64_t device);

/* True when hardly anything is free. */
bool shm_is_full(const struct shm_volume *v);
/* True when less is free than the mappings may still need. */
bool shm_is_exceeded(const struct shm_volume *v);
/* True when either holds. */
bool shm_is_short(const struct shm_volume *v);

#endif
