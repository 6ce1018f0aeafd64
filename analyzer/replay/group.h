/*
 * group.h - a memory cgroup (version 1 or 2) for a player, so that the kernel itself kills it at a
 * limit. The group lies below a writable group of this process and is removed after the run.
 */
#ifndef ANALYZER_REPLAY_GROUP_H
#define ANALYZER_REPLAY_GROUP_H

#include <limits.h>
#include <stdbool.h>

#include "util/text/err.h"

/* The group to make others in. */
struct group_parent {
	int version;
	const char *dir;
};

struct group {
	int version; /* 0: none is known */
	char dir[PATH_MAX];
};

/* Make a group without a limit and without swap. 0; negative with err: it cannot be made. */
int group_make(const struct group_parent *parent, struct group *out, struct err *err);
/* Remove the group. Its processes must have ended. */
void group_remove(struct group *g);
/* Move the calling process into the group. 0 or negative errno. */
int group_enter(const struct group *g);
/* Return whether the kernel killed a process in the group. */
bool group_killed(const struct group *g);

/* The names of a group's files. */
static inline const char *group_limit_file(int version)
{
	return version == 2 ? "memory.max" : "memory.limit_in_bytes";
}

static inline const char *group_usage_file(int version)
{
	return version == 2 ? "memory.current" : "memory.usage_in_bytes";
}

#endif
