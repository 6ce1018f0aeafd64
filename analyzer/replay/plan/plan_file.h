/*
 * plan_file.h - operations of threads, gathered into epochs and written as a plan (plan.h). Decides
 * which threads may go on side by side; knows nothing of traces.
 */
#ifndef ANALYZER_REPLAY_PLAN_FILE_H
#define ANALYZER_REPLAY_PLAN_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "replay/plan/plan.h"
#include "util/text/err.h"
#include "util/vec.h"

struct plan_lane {
	VEC(struct plan_op) ops; /* of this epoch */
	uint32_t last; /* part, or PLAN_NONE */
	uint64_t total; /* operations ever */
	int64_t now, least, most; /* bytes that live more than when the epoch began */
	bool ended;
	VEC(uint32_t)
	spare; /* slots to be had: neighbours, so that no other thread writes beside them */
};

struct plan_slot {
	uint32_t epoch, thread; /* of the latest operation on it */
	uint32_t home; /* the lane that it was made for */
};

struct plan_file {
	FILE *out; /* NULL: nothing is written, but all is counted */
	VEC(struct plan_lane) lanes;
	VEC(uint32_t) active; /* lanes with operations in this epoch */
	VEC(struct plan_part) parts;
	VEC(uint32_t) firsts;
	VEC(struct plan_slot) slots;
	VEC(uint32_t) left; /* slots, given back in this epoch */
	VEC(uint32_t) ended; /* lanes that have spare slots */
	uint32_t epoch, epoch_ops;
	uint64_t epoch_range; /* sum of the lanes' most less least */
	uint64_t ops;
};

/* Lane 0 is there from the start. 0 or -ENOMEM. */
int plan_file_init(struct plan_file *f, FILE *out);
void plan_file_fini(struct plan_file *f);

/* A new thread, which `creator` starts. 0, or negative. */
int plan_file_spawn(struct plan_file *f, uint32_t creator, uint32_t *thread);
/* A slot, or -ENOMEM. What is left may be another block's: of the lane that it was made for at once
 * where it left it itself, else from the next epoch on. */
int plan_file_take(struct plan_file *f, uint32_t thread, uint32_t *slot);
int plan_file_leave(struct plan_file *f, uint32_t slot);

/* The thread's next operation; op->slot is a block's. change: bytes that live more, or less. 0, or
 * a negative errno of writing. */
int plan_file_add(struct plan_file *f, uint32_t thread, struct plan_op op, int64_t change);
/* The same for a piece of the slot's mapping, from `at` on. */
int plan_file_add_at(
    struct plan_file *f, uint32_t thread, uint64_t at, struct plan_op op, int64_t change);
/* The same for one that nothing may run beside, and whose slot may be nobody's. */
int plan_file_alone(struct plan_file *f, uint32_t thread, struct plan_op op);
/* After all that others did before: whoever begins later may get what it leaves in its allocator.
 */
int plan_file_exit(struct plan_file *f, uint32_t thread);
/* Ends the last epoch; header and tables. */
int plan_file_finish(struct plan_file *f, uint32_t samples, struct err *err);

static inline struct plan_op plan_op(enum plan_what what, uint32_t slot, uint64_t size)
{
	if (size > PLAN_SIZE_MAX)
		size = PLAN_SIZE_MAX;
	return (struct plan_op){.slot = slot,
	    .size_low = (uint32_t)size,
	    .size_high = (uint16_t)(size >> 32),
	    .what = (uint8_t)what};
}

#endif
