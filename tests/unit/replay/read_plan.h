/* read_plan.h - a plan as its player sees it, with the rules that every plan keeps. */
#ifndef TESTS_UNIT_REPLAY_READ_PLAN_H
#define TESTS_UNIT_REPLAY_READ_PLAN_H

#include <stdio.h>

#include "replay/plan/plan.h"

struct plan {
	struct plan_header header;
	struct plan_part *parts;
	struct plan_op *ops;
	uint32_t *firsts;
};

/* Read a file that plan_file_finish() wrote. Fail the test if a part is of no epoch, a thread's
 * parts are not in order, two threads touch one block in the same epoch or differ from the
 * record by more than a MiB together, or a slot has two blocks or lacks a needed one. */
void plan_read(FILE *f, struct plan *out);
void plan_forget(struct plan *p);

#endif
