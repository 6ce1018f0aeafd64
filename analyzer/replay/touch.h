/*
 * touch.h - how much of what was acquired the program wrote to: fitted to the first half of the
 * recorded resident curve, so that its second half can tell whether it is right.
 *
 * The anonymous resident bytes are taken for a constant, all of the small blocks, and a share of
 * each of the other classes (plan_class()): the likeliest shares of 0 to 1, when a share is 1 give
 * or take a half (of large mappings 0.1), and a measurement right to 3 in 100, or too small.
 */
#ifndef ANALYZER_REPLAY_TOUCH_H
#define ANALYZER_REPLAY_TOUCH_H

#include <stdbool.h>

#include "replay/planner.h"
#include "replay/recorded.h"

/* So many times as much counts what was measured above a fit as what was below it. */
#define TOUCH_ABOVE 9

struct touch_fit {
	double share[PLAN_CLASSES];
	double error[PLAN_CLASSES]; /* of a share, either way; 0.5: the first half tells nothing */
	/* Of what is young (plan_moment), what was not written to as yet, at most. */
	double behind;
	uint64_t until_ns; /* the first half ends here; 0: nothing was measured, all is touched */
	uint32_t samples; /* in it */
};

void touch_fit(
    const struct recorded *recorded, const struct plan_facts *plan, struct touch_fit *out);
struct play_touch touch_policy(const struct touch_fit *fit);
/* The share of all that is of the kind, over what lives at the moment; of nothing, -1. */
double touch_share(const struct touch_fit *fit, enum plan_kind kind, const struct plan_moment *m);
/* Bytes that more, or (up: false) less of what lives then may be touched than the shares say. */
uint64_t touch_doubt(const struct touch_fit *fit, const struct plan_moment *m, bool up);
/* Bytes that are touched of what lives at the moment. */
uint64_t touch_bytes(const struct touch_fit *fit, const struct plan_moment *m);

#endif
