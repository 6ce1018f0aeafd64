/*
 * failure.h - the failure: a refused request or a kill, under which limit, and with how much in
 * use. `s` is the supervisor's record of the process, or NULL.
 */
#ifndef ANALYZER_VERDICT_FAILURE_H
#define ANALYZER_VERDICT_FAILURE_H

#include "model/model.h"
#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* How the process ended, if anybody saw it. */
struct ending {
	enum end_how how;
	uint32_t code;
};
struct ending failure_ending(const struct model *m, const struct supervised *s);

/* Bytes that live at a moment. */
struct lived {
	uint64_t all, shared; /* shared: part of all */
};

/* Resident bytes of the process that belong to no file. */
struct resident {
	uint64_t anonymous, shared;
};

/* Return how much more is resident at the moment than in the sample of `l`: later live bytes become
 * resident in the same proportion as the sample's. */
struct resident failure_grown(const struct model *m, const struct levels *l, struct lived moment);

/* Return the time of failure_resident()'s measurement; 0: none. */
uint64_t failure_measured_ns(const struct model *m, const struct levels *l, struct lived moment);

/* Decide whether the model's latest refusal was a failure. A survived refusal is one if a limit
 * made it: a service answers it with an error. A program that tries for huge pages, or for more
 * address space than exists, only probes: the model then counts the refusal as recovered. */
void failure_settle(struct model *m);

/* True if the kernel held the process back at its cgroup's memory.high when it was seen last: then
 * it stands still, and neither a refusal nor a kill follows. Sets *out. */
bool failure_stalled(const struct model *m, const struct supervised *s, struct failure_view *out);

/* Fill *out: the refusal that the process did not recover from, or FAILURE_NONE; no kills. */
void failure_read(const struct model *m, const struct supervised *s, struct failure_view *out);

/* True if the process ended badly, by itself, with hardly anything left of its limit on address
 * space or data. Then *out has that limit; else it is unchanged. */
bool failure_at_limit(const struct model *m, const struct supervised *s, struct failure_view *out);

/* Fill the limit of *out that a killer acts on, and its use at the end: the cgroup's or the
 * machine's if it was near, else LIMIT_NONE. */
void failure_kill_limit(
    const struct model *m, const struct supervised *s, struct failure_view *out);
/* The same if a counter shows that the cgroup's killer struck: then the cgroup was at its limit. */
void failure_kill_at_limit(
    const struct model *m, const struct supervised *s, struct failure_view *out);

/* The rest of a limit at the end, in bytes. */
struct room {
	enum limit_kind limit;
	uint64_t bytes, left; /* bytes: the limit */
	uint64_t measured_ns; /* the time of the level; machine and cgroup are carried on since */
};
/* Fill `rooms` with the machine's memory, the cgroup's, address space and data, if limit and use
 * were measured shortly before the end. Returns their number. */
#define FAILURE_ROOMS 4u
size_t failure_rooms(
    const struct model *m, const struct supervised *s, struct room rooms[FAILURE_ROOMS]);

/* True if that is close to the peak of live bytes, as one program's peaks vary. */
bool failure_near_peak(const struct model *m, uint64_t bytes);

/* Return the moment that explains a failure: the refusal; for a kill the peak, if it was shortly
 * before, measured in the program's steps. */
enum moment failure_moment(const struct model *m);
/* Return the bytes live at the peak (AT_PEAK), or now. */
struct lived failure_lived(const struct model *m, enum moment moment);

/* Fill the limit of *out that was in force when nothing failed, and its highest use. */
void failure_limits(const struct model *m, const struct supervised *s, struct failure_view *out);

/* Fill *out with the resident bytes at the moment: the sample, and failure_grown() since. False:
 * nothing was sampled. */
bool failure_resident(
    const struct model *m, const struct levels *l, struct lived moment, struct resident *out);

/* The levels that count. */
enum levels_at {
	LEVELS_AT_REFUSAL, /* the process's own, noted with the refusal */
	LEVELS_AT_END, /* the newest, for a kill */
	LEVELS_AT_PEAK, /* the sample with the most resident bytes, for a run that did not fail */
};
/* Fill *out with the levels at `moment_ns`: the process's own, or else the supervisor's. *age_ns:
 * age of the newest sample of resident bytes at the moment. */
void failure_levels(const struct model *m, const struct supervised *s, enum levels_at at,
    uint64_t moment_ns, struct levels *out, uint64_t *age_ns);

/* Bytes, as sampled; others: anonymous memory of the other processes. */
struct cgroup_shares {
	uint64_t others, shmem, kernel, cache, swap;
};
struct cgroup_shares cgroup_shares_of(const struct model *m, const struct levels *v);

/* Return the bytes that strangers hold under the failure's limit: everything except this process
 * and `known` bytes of other recorded processes. Files in memory that grew while hardly anybody
 * else was in the cgroup are left by the program. `s` may be NULL. */
struct scene_others cgroup_shares_strangers(const struct model *m, const struct supervised *s,
    const struct levels *v, const struct failure_view *failure, uint64_t known);

#endif
