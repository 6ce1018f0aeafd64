/*
 * touch.h - how much of what was acquired the program wrote to: fitted to the first half of the
 * recorded resident curve, so that its second half can tell whether it is right.
 *
 * The anonymous resident bytes are taken for a constant, a share of what is resident of files
 * (pages of libraries that were written to), what the replay has resident beside what is live, all
 * of the small blocks, and a share of each of the other classes (plan_class()). They are the
 * likeliest ones, when a share is 1 give or take a tenth, of large mappings 0.1 give or take 0.3;
 * a measurement is right to 3 in 100, or too small by what was not written to as yet.
 */
#ifndef ANALYZER_REPLAY_TOUCH_H
#define ANALYZER_REPLAY_TOUCH_H

#include <stdbool.h>

#include "replay/plan/planner.h"
#include "replay/recorded.h"

/* The constant, the files, and each class but that of the small blocks. */
#define TOUCH_PARTS (PLAN_CLASSES + 1)

/* A replay's resident bytes at each of the plan's moments, with these shares of what lives. */
struct touch_replay {
	const double *resident;
	const double *share; /* of each class */
};

struct touch_fit {
	double share[PLAN_CLASSES];
	double base; /* bytes */
	double files; /* share */
	double doubt[TOUCH_PARTS][TOUCH_PARTS]; /* covariance, in MiB and shares */
	/* Bytes that the curve still grew by at the end of the first half, without anything that
	 * had been acquired meanwhile: it may go on. */
	double open;
	uint64_t until_ns; /* the first half ends here; 0: nothing was measured, all is touched */
	uint32_t samples; /* in it */
};

/* `replay` NULL: none was made as yet. 0 or -ENOMEM. */
int touch_fit(const struct recorded *recorded, const struct plan_facts *plan,
    const struct touch_replay *replay, struct touch_fit *out);
struct play_touch touch_policy(const struct touch_fit *fit);
/* The share of all that is of the kind, over what lives at the moment; of nothing, -1. */
double touch_share(const struct touch_fit *fit, enum plan_kind kind, const struct plan_moment *m);
/* Resident beside what is replayed, when so many bytes of files are. */
double touch_beside(const struct touch_fit *fit, double files);
/* Bytes that more, or (up: false) less of what lives then may be resident than the shares say. */
double touch_doubt(const struct touch_fit *fit, const struct plan_moment *m, double files, bool up);
/* Bytes that are touched of what lives at the moment. */
uint64_t touch_bytes(const struct touch_fit *fit, const struct plan_moment *m);

#endif
