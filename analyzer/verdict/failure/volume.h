/*
 * volume.h - a full file system in memory (/dev/shm) as the limit: a write to a page of a file
 * mapped there ends a process by SIGBUS, and a request for space is refused.
 */
#ifndef ANALYZER_VERDICT_VOLUME_H
#define ANALYZER_VERDICT_VOLUME_H

#include "model/heap/shm_feed.h"
#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* The result's part about it. */
struct volume_view {
	uint64_t device;
	const char *directory; /* its mount point, if a file's name shows it; or NULL */
	uint64_t siblings; /* bytes of its files that other recorded processes had mapped then */
	struct shm_feed feed; /* the process's events there */
	struct model *whole; /* of all that the process did */
	struct callsites *work; /* of that model; NULL before volume_work() */
};

/* Return the device number of the file system that failed, by the process's events and end, and
 * fill *out with the failure; 0: none failed. *presumed: only the bad end is known. `s` may be
 * NULL. */
uint64_t volume_failed(
    const struct model *m, const struct supervised *s, struct failure_view *out, bool *presumed);

/* True if one has less free than the process may still write to its mappings there. */
bool volume_short(const struct model *m);

/* Confine the result to mappings there until that moment: replace its model and *feed.
 * volume_leave() undoes it. 0; negative errno with err. */
int volume_enter(struct verdict_result *r, struct feed *feed, uint64_t device, uint64_t until_ns,
    struct err *err);
void volume_leave(struct verdict_result *r, struct feed *feed);
/* Fill *out with everything that the process did until the moment. 0; negative errno with err. */
int volume_work(struct volume_view *v, enum moment moment, struct scene_work *out, struct err *err);
void volume_free(struct volume_view *v); /* accepts NULL; keeps the result's model */

/* What a set's processes had mapped of a file system. */
struct volume_of {
	uint64_t device; /* the file system */
	size_t subject;
	uint64_t moment_ns; /* on the subject's clock */
	bool may_move; /* another process may become the holder */
};
struct volume_tree {
	size_t holder; /* the process with far more than the subject; or else the subject */
	uint64_t siblings; /* bytes that only the others had mapped, each file once */
	uint64_t unmapped; /* bytes of files that any of them had mapped before, each once */
};
/* Fill *out. 0; negative errno with err. */
int volume_tree(const struct trace_set *set, const struct volume_of *of, struct volume_tree *out,
    struct err *err);

/* The bytes in use there: the subject's, other recorded processes', and files that none of them has
 * mapped. Part of those are left: recorded processes made them, closed them, and did not remove
 * them. */
struct volume_shares {
	uint64_t own, siblings, files, left;
};
struct volume_shares volume_shares(const struct verdict_result *r);

#endif
