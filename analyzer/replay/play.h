/*
 * play.h - runs a plan in a process of its own, under an allocator and a limit.
 */
#ifndef ANALYZER_REPLAY_PLAY_H
#define ANALYZER_REPLAY_PLAY_H

#include <stddef.h>

#include "replay/group.h"
#include "replay/plan/plan.h"
#include "util/text/err.h"

/* An allocator that --compare knows by name. */
struct play_allocator {
	const char *name; /* "jemalloc" */
	const char *file; /* part of the name of its library's file */
	const char *libraries[4]; /* names for the loader; none: the C library itself */
};
/* Return the allocator of that name, or NULL. */
const struct play_allocator *play_allocator(const char *name);
/* Return "glibc, jemalloc, ...", for messages. */
const char *play_allocator_names(void);
/* Return the allocator whose library the file is, or NULL. */
const struct play_allocator *play_allocator_of(const char *path);

/* The variables that allocators read, NULL-terminated. The player gets the recorded program's
 * values, not ours. */
#define PLAY_SETTINGS 10u
extern const char *const play_settings[PLAY_SETTINGS + 1];

/* A player, before and after a run. The caller sets .beside of the samples in place. */
struct player {
	const char *program; /* whyoom-player */
	int plan; /* descriptor */
	int results; /* descriptor of `play` */
	struct play *play; /* mapped; owned */
	size_t bytes;
	uint32_t samples;
	struct group_parent parent; /* for PLAY_LIMIT_GROUP: where to make the run's group */
	struct group group; /* of the current run */
	const char *settings[PLAY_SETTINGS]; /* values of play_settings, NULL: not set */
};

/* Prepare runs of a plan with that many samples. 0, or negative with err. */
int player_open(struct player *p, const char *program, int plan, uint32_t samples, struct err *err);
void player_close(struct player *p);

/*
 * Run the plan with the limit, the touch policy and the samples' .beside in p->play, and wait until
 * it ends; p->play then has the outcome. With p->play->hold the player stops at the failure: *pid
 * is its process, which the caller ends. 0; negative with err: it did not run, or the allocator is
 * not installed.
 */
int player_run(struct player *p, const struct play_allocator *allocator, int *pid, struct err *err);

#endif
