/*
 * volume.h - a file system in memory (/dev/shm) that is full as the limit that struck: who writes
 * to a page of a mapped file there is killed by SIGBUS, who asks for space is refused it.
 */
#ifndef ANALYZER_VERDICT_VOLUME_H
#define ANALYZER_VERDICT_VOLUME_H

#include "model/heap/shm_feed.h"
#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* What is kept of it in a result. */
struct volume_view {
	uint64_t device;
	const char *directory; /* where it is, as far as a file's name tells; or NULL */
	uint64_t siblings; /* in files of it that other recorded processes had mapped then, bytes */
	struct shm_feed feed; /* of the process, and then: */
	struct model *whole; /* of all of the process */
	struct callsites *work; /* and its places; NULL before volume_work() */
};

/* Whether it was that, by what the process and its end say. Then *out is how it failed, and the
 * device's number is returned; 0: it was not. `presumed`: it ended badly, that is all. */
uint64_t volume_failed(const struct model *m, const struct trace_facts *facts,
    const struct supervised *s, struct failure_view *out, bool *presumed);

/* Is there one with less free than the process may have written to what it has mapped there? */
bool volume_short(const struct model *m);

/* From here on the result is about what was mapped there alone, until that moment: its model, and
 * *feed. 0; negative errno. volume_leave() takes it back. */
int volume_enter(struct verdict_result *r, struct feed *feed, uint64_t device, uint64_t until_ns,
    struct err *err);
void volume_leave(struct verdict_result *r, struct feed *feed);
/* All that the process did until the moment. 0; negative errno. */
int volume_work(struct volume_view *v, enum moment moment, struct scene_work *out, struct err *err);
void volume_free(struct volume_view *v); /* accepts NULL; not the result's model */

/* Who of a set had mapped what of it. */
struct volume_tree {
	size_t holder; /* who had far more than the subject; else the subject */
	uint64_t siblings; /* what all but the holder had, and that not; bytes, each file once */
};
/* At the subject's moment. `may_move`: another may be the holder. 0; negative errno. */
int volume_tree(const struct trace_set *set, size_t subject, uint64_t device, uint64_t moment_ns,
    bool may_move, struct volume_tree *out, struct err *err);

/* Of what is used there at the moment, what is charged to whom; the sum is the usage. */
struct volume_shares {
	uint64_t own, siblings, files;
};
struct volume_shares volume_shares(const struct verdict_result *r);

#endif
