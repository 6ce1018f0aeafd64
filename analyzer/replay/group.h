/*
 * cgroup_shares.h - a memory cgroup of a player's own, version 1 or 2, so that the kernel itself
 * kills it at a limit. Made below a group that this process is in or below, where that may be
 * written to, and removed after the run.
 */
#ifndef ANALYZER_REPLAY_GROUP_H
#define ANALYZER_REPLAY_GROUP_H

#include <limits.h>
#include <stdbool.h>

#include "util/text/err.h"

/* Where groups can be made; version 0: nowhere is known. */
struct group_parent {
	int version;
	const char *dir;
};

struct group {
	int version; /* 0: there is none */
	char dir[PATH_MAX];
};

/* Without a limit as yet, and without swap. 0; negative with err: none can be made there. */
int group_make(const struct group_parent *parent, struct group *out, struct err *err);
/* Its end; whoever was in it has ended. */
void group_remove(struct group *g);
/* The calling process goes into it. 0 or negative errno. */
int group_enter(const struct group *g);
/* The kernel killed in it. */
bool group_killed(const struct group *g);

/* The names of its files. */
static inline const char *group_limit_file(int version)
{
	return version == 2 ? "memory.max" : "memory.limit_in_bytes";
}

static inline const char *group_usage_file(int version)
{
	return version == 2 ? "memory.current" : "memory.usage_in_bytes";
}

#endif
