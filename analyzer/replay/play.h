/*
 * play.h - runs a plan in a process of its own, under an allocator and a limit, and says how it
 * went.
 */
#ifndef ANALYZER_REPLAY_PLAY_H
#define ANALYZER_REPLAY_PLAY_H

#include <stddef.h>

#include "replay/group.h"
#include "replay/plan/plan.h"
#include "util/text/err.h"

/* An allocator that can be asked for by name. */
struct play_allocator {
	const char *name; /* "jemalloc" */
	const char *file; /* part of the name of its library's file */
	const char *libraries[4]; /* names that the loader may find; none: the C library's own */
};
/* NULL: no such name. */
const struct play_allocator *play_allocator(const char *name);
/* "glibc, jemalloc, ...", for messages. */
const char *play_allocator_names(void);
/* The one that a file is the library of, or NULL. */
const struct play_allocator *play_allocator_of(const char *path);

/* The variables that allocators read, NULL-terminated: a player has those of the program, not ours.
 */
#define PLAY_SETTINGS 10u
extern const char *const play_settings[PLAY_SETTINGS + 1];

/* A run, before and after. The samples' .beside is to be set by the caller, in place. */
struct player {
	const char *program; /* whyoom-player */
	int plan; /* descriptor */
	int results; /* the same, of `play` */
	struct play *play; /* mapped; owned */
	size_t bytes;
	uint32_t samples;
	struct group_parent parent; /* of PLAY_LIMIT_GROUP: where a run's group is made */
	struct group group; /* the present run's */
	const char *settings[PLAY_SETTINGS]; /* values of play_settings, NULL: not set */
};

/* For plans of so many samples. 0, or negative with err. */
int player_open(struct player *p, const char *program, int plan, uint32_t samples, struct err *err);
void player_close(struct player *p);

/*
 * One run with the limit, the touching and the samples' .beside that are in p->play; it is over
 * when this returns, and then p->play tells. With `hold` the player stops where it failed: *pid is
 * it, and the caller ends it. 0; negative with err: it could not be run, or the allocator is not
 * there.
 */
int player_run(struct player *p, const struct play_allocator *allocator, int *pid, struct err *err);

#endif
