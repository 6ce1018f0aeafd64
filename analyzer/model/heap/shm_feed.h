/*
 * shm_feed.h - a feed that shows a process as one file system in memory sees it: of blocks and
 * mappings only those of its files, everything else unchanged. Code that asks a feed how memory was
 * used then answers for that file system alone.
 */
#ifndef ANALYZER_MODEL_SHM_FEED_H
#define ANALYZER_MODEL_SHM_FEED_H

#include "model/feed.h"
#include "util/ranges.h"

struct shm_feed {
	struct feed below;
	uint64_t device, until_ns; /* until_ns: what comes later is left out */
	struct ranges mapped; /* by now; `serial` is the number of the file */
	bool hit; /* the latest unmapping was of some of it */
};

/* `below` must outlive *out, and *out what shm_feed_of() returns. */
void shm_feed_init(struct shm_feed *out, struct feed below, uint64_t device);
void shm_feed_fini(struct shm_feed *f);
struct feed shm_feed_of(struct shm_feed *f);

#endif
