/*
 * shm_feed.h - a feed that shows a process as one file system in memory sees it: of blocks and
 * mappings only its files, everything else unchanged. Code that asks a feed how memory was used
 * then answers for that file system alone.
 */
#ifndef ANALYZER_MODEL_SHM_FEED_H
#define ANALYZER_MODEL_SHM_FEED_H

#include "model/feed.h"
#include "util/ranges.h"

struct shm_feed {
	struct feed below;
	uint64_t device, until_ns; /* until_ns: later events are left out */
	struct ranges mapped; /* now; `serial` is the file's number */
	bool hit; /* the latest unmapping removed a part of it */
};

/* Initialise *out. `below` must outlive it, and it must outlive the result of shm_feed_of(). */
void shm_feed_init(struct shm_feed *out, struct feed below, uint64_t device);
void shm_feed_fini(struct shm_feed *f);
struct feed shm_feed_of(struct shm_feed *f);

#endif
