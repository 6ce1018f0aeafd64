/*
 * failure.h - what struck: a refused request or a kill, under which limit, and with how much in
 * use.
 */
#ifndef ANALYZER_VERDICT_FAILURE_H
#define ANALYZER_VERDICT_FAILURE_H

#include "verdict/supervised.h"
#include "verdict/verdict.h"

/* How the process ended, as far as anybody saw. */
struct ending {
	enum end_how how;
	uint32_t code;
};
struct ending ending_of(
    const struct model *m, const struct trace_facts *facts, const struct supervised *s);

/*
 * Fills *out. `killed` is set when the process was killed, or vanished, at a level that nothing
 * recorded explains: then out->kind is FAILURE_NONE, and growth must tell.
 */
/* How much more lives at the moment than at the time of that sample, resident as far as what lived
 * then was. */
uint64_t failure_grown(const struct model *m, const struct levels *l, uint64_t moment_live);

void failure_read(const struct model *m, const struct trace_facts *facts,
    const struct supervised *s, struct failure_view *out, bool *killed);

/* The moment to look at when it failed: the refusal; for a kill the high-water mark, when that was
 * shortly before. */
enum moment failure_moment(const struct model *m);

/* The limit in force when nothing failed, and the most that was used of it. */
void failure_limits(const struct model *m, const struct supervised *s, struct failure_view *out);

/*
 * The anonymous resident bytes at the moment: those of the sample, and what was acquired since, as
 * far as what lived then was resident. False when none was sampled.
 */
bool failure_resident(
    const struct model *m, const struct levels *l, uint64_t moment_live, uint64_t *anonymous);

/* The levels that hold for the failure (or the high-water mark): the process' own, else those seen
 * from outside. *age_ns: how much older than the moment the newest resident sample is. */
void failure_levels(const struct model *m, const struct supervised *s, bool failed, bool refused,
    uint64_t moment_ns, struct levels *out, uint64_t *age_ns);

#endif
