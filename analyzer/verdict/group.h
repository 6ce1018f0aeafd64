/*
 * group.h - what a cgroup is charged beside one of its processes, and what others hold of the
 * memory that a process is killed for.
 */
#ifndef ANALYZER_VERDICT_GROUP_H
#define ANALYZER_VERDICT_GROUP_H

#include "verdict/verdict.h"

/* Samples of one moment, carried on; bytes. */
struct group {
	uint64_t others, shmem, kernel, cache;
};
struct group group_of(const struct model *m, const struct levels *v);

/* Of the memory that the failure's limit is on, what is neither this process' nor, by at most
 * `known` bytes, of other processes that were recorded: somebody else's. */
struct scene_others group_strangers(const struct model *m, const struct levels *v,
    const struct failure_view *failure, uint64_t known);

#endif
