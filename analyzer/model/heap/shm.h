/*
 * shm.h - file systems of a fixed size whose files are memory (/dev/shm), as far as the process
 * maps files there or was refused space: how much is free, how much of it is mapped, and how much
 * of the mapped part may still be unwritten.
 */
#ifndef ANALYZER_MODEL_SHM_H
#define ANALYZER_MODEL_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/event.h"

struct shm_volume {
	uint64_t device; /* its number, as stat() tells it */
	uint64_t total, free, time_ns; /* as it was last seen */
	uint64_t others; /* used there when nothing of it was mapped */
	uint64_t mapped; /* by the process, now */
	uint64_t pending; /* of that, at most: without memory when it was last seen */
	const char *name; /* of the file that was mapped last; NULL: none was */
};
#define SHM_VOLUMES 8u /* more than anybody has; what comes beyond is not kept */

struct shm {
	struct shm_volume list[SHM_VOLUMES];
	uint32_t count;
	bool untold; /* a file of /dev/shm was mapped, and nothing told of what is free there */
};

/* Read the levels of an event; call it for a MAP before the mapping counts. Index plus 1; 0: the
 * event has none. */
uint32_t shm_note(struct shm *s, const struct event *e);
/* A file of /dev/shm was mapped, and nothing told of what is free there. */
void shm_untold(struct shm *s);
/* `change` more bytes are mapped of that number; 0: none. */
void shm_moved(struct shm *s, uint32_t number, int64_t change);

/* NULL: that device was not seen. */
const struct shm_volume *shm_find(const struct shm *s, uint64_t device);

/* True when next to nothing is free. */
bool shm_is_full(const struct shm_volume *v);
/* True when less is free than may still be written to mappings. */
bool shm_is_exceeded(const struct shm_volume *v);
/* True when one of these holds. */
bool shm_is_short(const struct shm_volume *v);

#endif
