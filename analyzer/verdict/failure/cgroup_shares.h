/*
 * cgroup_shares.h - what a cgroup is charged beside one of its processes, and what others hold of
 * the memory that a process is killed for.
 */
#ifndef ANALYZER_VERDICT_GROUP_H
#define ANALYZER_VERDICT_GROUP_H

#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* Samples of one moment, carried on; bytes. */
struct group {
	uint64_t others, shmem, kernel, cache;
};
struct group group_of(const struct model *m, const struct levels *v);

/*
 * The levels of a kill by the cgroup's killer, *v, from the last sample before it. He comes when
 * the group is full: its usage rose by what was left of the limit. Of that the process' own growth
 * is known; of the rest so much is the others' as they were seen to have more, each by itself since
 * then or all of them when he had struck.
 */
void group_carry(const struct model *m, const struct supervised *s, struct levels *v);

/* Of the memory that the failure's limit is on, what is neither this process' nor, by at most
 * `known` bytes, of other processes that were recorded: somebody else's. */
struct scene_others group_strangers(const struct model *m, const struct levels *v,
    const struct failure_view *failure, uint64_t known);

#endif
