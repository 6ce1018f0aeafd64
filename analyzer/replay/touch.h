/*
 * touch.h - estimates how much of its memory the program wrote to. The estimate is fitted to the
 * first half of the recorded resident curve; the second half tests it.
 *
 * Anonymous resident memory is a sum: a constant, a share of the resident file pages (libraries'
 * pages that were written to), the replay's own overhead, all small blocks, and a share of each
 * other class (plan_class()). The fit is the likeliest set of shares, given the expectations and
 * errors at the head of touch.c.
 */
#ifndef ANALYZER_REPLAY_TOUCH_H
#define ANALYZER_REPLAY_TOUCH_H

#include <stdbool.h>

#include "replay/plan/planner.h"
#include "replay/recorded.h"

/* The constant, the files, and each class except small blocks. */
#define TOUCH_PARTS (PLAN_CLASSES + 1)

/* The resident bytes of a replay at each moment of the plan, made with these shares. */
struct touch_replay {
	const double *resident;
	const double *share; /* of each class */
};

struct touch_fit {
	double share[PLAN_CLASSES];
	double base; /* bytes */
	double files; /* share */
	double doubt[TOUCH_PARTS][TOUCH_PARTS]; /* covariance, in MiB and shares */
	/* Bytes by which the curve still grew at the end of the first half without new blocks; that
	 * growth may go on. */
	double open;
	uint64_t until_ns; /* end of the first half; 0: nothing was measured, all is touched */
	uint32_t samples; /* in the first half */
};

/* Fit the shares. `replay` NULL: there was no run yet. 0 or -ENOMEM. */
int touch_fit(const struct recorded *recorded, const struct plan_facts *plan,
    const struct touch_replay *replay, struct touch_fit *out);
struct play_touch touch_policy(const struct touch_fit *fit);
/* Return the touched share of all live blocks of that kind at the moment; -1: there are none. */
double touch_share(const struct touch_fit *fit, enum plan_kind kind, const struct plan_moment *m);
/* Return the resident bytes beside the replayed blocks, given the resident bytes of files. */
double touch_beside(const struct touch_fit *fit, double files);
/* Return by how much more (`up`) or less may be resident than the shares say. */
double touch_doubt(const struct touch_fit *fit, const struct plan_moment *m, double files, bool up);
/* Return the touched bytes of the live blocks at the moment. */
uint64_t touch_bytes(const struct touch_fit *fit, const struct plan_moment *m);

#endif
