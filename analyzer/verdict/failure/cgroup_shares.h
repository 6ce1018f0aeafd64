/*
 * cgroup_shares.h - a cgroup's memory that others than one of its processes are charged for, and
 * the memory that others hold of the limit that killed a process.
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

/* Carry *v, the last sample before a kill by the cgroup's killer, on to the kill. The killer
 * strikes when the group is full, so its usage rose by the rest of the limit. The process's own
 * growth is known; the others get the growth that was sampled, of each process since the sample or
 * of all after the kill. */
void cgroup_shares_carry(const struct model *m, const struct supervised *s, struct levels *v);

/* Return the bytes that strangers hold under the failure's limit: everything except this process
 * and `known` bytes of other recorded processes. */
struct scene_others cgroup_shares_strangers(const struct model *m, const struct levels *v,
    const struct failure_view *failure, uint64_t known);

#endif
