/*
 * cgroup_shares.h - what a cgroup is charged for others than one of its processes, and what others
 * hold of the memory that a process was killed for.
 */
#ifndef ANALYZER_VERDICT_CGROUP_SHARES_H
#define ANALYZER_VERDICT_CGROUP_SHARES_H

#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* Bytes, as sampled; others: anonymous memory of the other processes. */
struct cgroup_shares {
	uint64_t others, shmem, kernel, cache;
};
struct cgroup_shares cgroup_shares_of(const struct model *m, const struct levels *v);

/*
 * Carry the last sample before a kill by the cgroup's killer, *v, on to the kill. He comes when the
 * group is full, so its usage rose by what was left of the limit. The process' own growth is known;
 * of the rest, the others get what they were seen to have more, each by itself since the sample or
 * all of them after the kill.
 */
void cgroup_shares_carry(const struct model *m, const struct supervised *s, struct levels *v);

/* Return what strangers hold of the memory that the failure's limit is on: all but this process and
 * `known` bytes of other recorded processes. */
struct scene_others cgroup_shares_strangers(const struct model *m, const struct levels *v,
    const struct failure_view *failure, uint64_t known);

#endif
