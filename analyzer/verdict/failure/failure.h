/*
 * failure.h - what struck: a refused request or a kill, under which limit, and with how much in
 * use. `s` is what the supervisor saw of the process, or NULL.
 */
#ifndef ANALYZER_VERDICT_FAILURE_H
#define ANALYZER_VERDICT_FAILURE_H

#include "model/model.h"
#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* How the process ended, as far as anybody saw. */
struct ending {
	enum end_how how;
	uint32_t code;
};
struct ending failure_ending(const struct model *m, const struct supervised *s);

/* Bytes that live at a moment. */
struct lived {
	uint64_t all, shared; /* shared: part of all, shared memory */
};

/* Resident bytes of the process that belong to no file. */
struct resident {
	uint64_t anonymous, shared;
};

/* Return how much more is resident at the moment than in the sample of `l`: live bytes that came
 * since become resident in the proportion in which those of the sample were. */
struct resident failure_grown(const struct model *m, const struct levels *l, struct lived moment);

/* Return the time of the measurement that failure_resident() starts from; 0: there is none. */
uint64_t failure_measured_ns(const struct model *m, const struct levels *l, struct lived moment);

/*
 * Decide whether the model's latest refusal was a failure. A survived refusal is one when a limit
 * made it: a service answers it with an error. A program that tries for huge pages, or for more
 * address space than there is, only probes: the model then counts it as recovered.
 */
void failure_settle(struct model *m);

/* Fill *out: the refused request that nobody recovered from, or FAILURE_NONE. Kills are kill.h's.
 */
void failure_read(const struct model *m, const struct supervised *s, struct failure_view *out);

/* Did the process end badly, by itself, with next to nothing left of the limit on its address space
 * or data? Then *out has that limit; else it stays as it was. */
bool failure_at_limit(const struct model *m, const struct supervised *s, struct failure_view *out);

/* Fill the limit of *out that a killer minds, and its use at the end: the cgroup's or the machine's
 * when it was near, else LIMIT_NONE. */
void failure_kill_limit(
    const struct model *m, const struct supervised *s, struct failure_view *out);
/* The same where a counter says that the cgroup's killer struck: then the cgroup was at its limit.
 */
void failure_kill_at_limit(
    const struct model *m, const struct supervised *s, struct failure_view *out);

/* What was left of a limit at the end, bytes. */
struct room {
	enum limit_kind limit;
	uint64_t bytes, left; /* bytes: the limit */
};
/* Fill `rooms` with the machine's memory, the cgroup's, address space and data: those whose limit
 * and use were measured shortly before the end. Returns their number. */
#define FAILURE_ROOMS 4u
size_t failure_rooms(
    const struct model *m, const struct supervised *s, struct room rooms[FAILURE_ROOMS]);

/* Is that next to the peak of the live bytes, as peaks of one program go? */
bool failure_near_peak(const struct model *m, uint64_t bytes);

/* Return the moment that explains a failure: the refusal; for a kill the peak, when that was
 * shortly before, as the program's steps go. */
enum moment failure_moment(const struct model *m);
/* Return what lived at the peak (AT_PEAK), or lives now. */
struct lived failure_lived(const struct model *m, enum moment moment);

/* Fill the limit of *out that was in force when nothing failed, and its highest use. */
void failure_limits(const struct model *m, const struct supervised *s, struct failure_view *out);

/* Fill *out with what is resident at the moment: the sample, and failure_grown() since. False when
 * nothing was sampled. */
bool failure_resident(
    const struct model *m, const struct levels *l, struct lived moment, struct resident *out);

/* Which levels count. */
enum levels_at {
	LEVELS_AT_REFUSAL, /* the process' own, as it noted them with the refusal */
	LEVELS_AT_END, /* the newest, for a kill */
	LEVELS_AT_PEAK, /* the sample with the most resident bytes, for a run that did not fail */
};
/* Fill *out with the levels at `moment_ns`: the process' own, else the supervisor's. *age_ns is by
 * how much the newest sample of resident bytes is older than the moment. */
void failure_levels(const struct model *m, const struct supervised *s, enum levels_at at,
    uint64_t moment_ns, struct levels *out, uint64_t *age_ns);

#endif
