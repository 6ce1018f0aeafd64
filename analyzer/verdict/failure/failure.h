/*
 * failure.h - what struck: a refused request or a kill, under which limit, and with how much in
 * use.
 */
#ifndef ANALYZER_VERDICT_FAILURE_H
#define ANALYZER_VERDICT_FAILURE_H

#include "verdict/failure/supervised.h"
#include "verdict/result.h"

/* How the process ended, as far as anybody saw. */
struct ending {
	enum end_how how;
	uint32_t code;
};
struct ending ending_of(
    const struct model *m, const struct trace_facts *facts, const struct supervised *s);

/* Bytes that live at a moment. */
struct lived {
	uint64_t all, shared; /* shared: of all, shared memory */
};

/* Resident bytes of the process that are no file's. */
struct resident {
	uint64_t anonymous, shared;
};

/* How much more is resident at the moment than at the time of that sample: of what came since as
 * much as of what lived then. */
struct resident failure_grown(const struct model *m, const struct levels *l, struct lived moment);

/* When that was measured which failure_resident() tells; 0: never. */
uint64_t failure_measured_ns(const struct model *m, const struct levels *l, struct lived moment);

/*
 * A refusal that was survived is a failure when a limit made it, which a service then answers with
 * an error. Huge pages that there are none of, or more address space than there is, are asked for
 * to see whether they are to be had: without that the model's latest one is taken for got over.
 */
void failure_settle(struct model *m);

/* Fills *out: the refused request that nobody recovered from, or FAILURE_NONE. Kills are kill.h's.
 */
void failure_read(const struct model *m, const struct trace_facts *facts,
    const struct supervised *s, struct failure_view *out);

/* Did it end badly, by itself, with next to nothing left of the limit of its address space? Then
 * *out has that limit. */
bool failure_at_limit(const struct model *m, const struct trace_facts *facts,
    const struct supervised *s, struct failure_view *out);

/* The limit that a killer minds, and how much was used of it when the process ended: the cgroup's
 * or the machine's when it was near, else LIMIT_NONE. */
void failure_kill_limit(
    const struct model *m, const struct supervised *s, struct failure_view *out);
/* The same where a counter says that the cgroup's killer struck: that is at its limit. */
void failure_kill_at_limit(
    const struct model *m, const struct supervised *s, struct failure_view *out);

/* What was left of a limit at the end. */
struct room {
	enum limit_kind limit;
	uint64_t bytes, left;
};
/* The machine's memory, the cgroup's, address space and data: those of which limit and use were
 * measured within the last tenth of the run (or 5 s, if that is longer). Returns how many. */
#define FAILURE_ROOMS 4u
size_t failure_rooms(
    const struct model *m, const struct supervised *s, struct room rooms[FAILURE_ROOMS]);

/* Is that next to the peak of the live bytes, as peaks of one program go? */
bool failure_near_peak(const struct model *m, uint64_t bytes);

/* The moment to look at when it failed: the refusal; for a kill the high-water mark, when that was
 * shortly before, as steps go. */
enum moment failure_moment(const struct model *m);
/* What lived at that high-water mark, or lives now. */
struct lived failure_lived(const struct model *m, enum moment moment);

/* The limit in force when nothing failed, and the most that was used of it. */
void failure_limits(const struct model *m, const struct supervised *s, struct failure_view *out);

/*
 * What is resident at the moment: as in the sample, and what was acquired since, as far as what
 * lived then was. False when nothing was sampled.
 */
bool failure_resident(
    const struct model *m, const struct levels *l, struct lived moment, struct resident *out);

/* The levels that hold for the failure (or the high-water mark): the process' own, else those seen
 * from outside. *age_ns: how much older than the moment the newest resident sample is. */
void failure_levels(const struct model *m, const struct supervised *s, bool failed, bool refused,
    uint64_t moment_ns, struct levels *out, uint64_t *age_ns);

#endif
