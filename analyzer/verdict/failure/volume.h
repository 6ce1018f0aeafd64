/*
 * volume.h - a full file system in memory (/dev/shm) as the limit that struck: writing to a page of
 * a mapped file there ends a process by SIGBUS, and a request for space is refused.
 */
#ifndef ANALYZER_VERDICT_VOLUME_H
#define ANALYZER_VERDICT_VOLUME_H

#include "model/heap/shm_feed.h"
#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* What a result keeps of it. */
struct volume_view {
	uint64_t device;
	const char *directory; /* its mount point, as far as a file's name tells; or NULL */
	uint64_t siblings; /* bytes of its files that other recorded processes had mapped then */
	struct shm_feed feed; /* what the process did in it */
	struct model *whole; /* of all that the process did */
	struct callsites *work; /* of that model; NULL before volume_work() */
};

/* Return the device number of the file system that struck, by what the process and its end say, and
 * fill *out with the failure; 0: none struck. *presumed: the process ended badly, which is all that
 * is known. `s` may be NULL. */
uint64_t volume_failed(
    const struct model *m, const struct supervised *s, struct failure_view *out, bool *presumed);

/* Is there one with less free than the process may have written to its mappings there? */
bool volume_short(const struct model *m);

/* Confine the result to what was mapped there until that moment: replace its model and *feed.
 * volume_leave() undoes it. 0; negative errno with err. */
int volume_enter(struct verdict_result *r, struct feed *feed, uint64_t device, uint64_t until_ns,
    struct err *err);
void volume_leave(struct verdict_result *r, struct feed *feed);
/* Fill *out with all that the process did until the moment. 0; negative errno with err. */
int volume_work(struct volume_view *v, enum moment moment, struct scene_work *out, struct err *err);
void volume_free(struct volume_view *v); /* accepts NULL; leaves the result's model */

/* What the processes of a set had mapped of a file system. */
struct volume_of {
	uint64_t device; /* the file system */
	size_t subject;
	uint64_t moment_ns; /* on the subject's clock */
	bool may_move; /* another process may be the holder */
};
struct volume_tree {
	size_t holder; /* the process with far more than the subject; else the subject */
	uint64_t siblings; /* bytes that the others had and the holder had not, each file once */
};
/* Fill *out. 0; negative errno with err. */
int volume_tree(const struct trace_set *set, const struct volume_of *of, struct volume_tree *out,
    struct err *err);

/* Return how the bytes in use there at the moment divide: the subject's, the other recorded
 * processes', and files of nobody known. */
struct volume_shares {
	uint64_t own, siblings, files;
};
struct volume_shares volume_shares(const struct verdict_result *r);

#endif
