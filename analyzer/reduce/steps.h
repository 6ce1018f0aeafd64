/*
 * steps.h - the requests of a process up to its failure as a short list of steps, for writing a
 * program. Repetitions with evenly changing block numbers and sizes are folded.
 */
#ifndef ANALYZER_REDUCE_STEPS_H
#define ANALYZER_REDUCE_STEPS_H

#include "util/text/str.h"
#include "util/vec.h"
#include "verdict/result.h"

enum step_what {
	STEP_MALLOC,
	STEP_CALLOC,
	STEP_REALLOC,
	STEP_ALIGNED,
	STEP_FREE,
	STEP_MAP,
	STEP_RESERVE, /* a mapping without access */
	STEP_UNMAP,
	STEP_DEVICE, /* from the driver */
	STEP_DEVICE_FREE,
	STEP_WHATS
};

static inline bool step_is_release(enum step_what what)
{
	return what == STEP_FREE || what == STEP_UNMAP || what == STEP_DEVICE_FREE;
}

struct program_step {
	uint32_t rows, times; /* on the first of `rows` repeated steps; else 0 */
	enum step_what what;
	uint32_t thread; /* from 0, in the order of their first steps */
	uint32_t block;
	int64_t block_step; /* added with each repetition */
	uint64_t size; /* bytes; for a release, those of the block */
	int64_t size_step;
	uint32_t stack; /* 0: of a release */
};

struct program {
	VEC(struct program_step) all; /* unfolded, without the failing request */
	VEC(struct program_step) rows;
	uint64_t count; /* of steps, unfolded */
	uint32_t blocks, threads;
	struct program_step last; /* the refused request; size 0: the process was killed */
	bool joined; /* one thread makes all steps */
	bool summed; /* see steps_sum() */
	bool device; /* the steps are the driver's, not the host's */
	uint64_t live; /* bytes, at the failure */
	uint64_t requested; /* bytes, in all */
	uint64_t room; /* bytes left at the refusal, 0: unknown */
	double touched; /* for a kill: the resident share of the live bytes */
	uint64_t resident; /* for a kill: resident bytes */
};

/* Read the verdict's process. 0; negative with err: no failure, or not by its own requests. */
int steps_read(const struct verdict_result *verdict, struct program *out, struct err *err);
void steps_fini(struct program *s);
/* Let one thread make all steps. */
void steps_join(struct program *s);

/* Keep only the live blocks at the failure, for each call site in one step and in blocks of their
 * mean size. 0 or -ENOMEM. */
int steps_sum(struct program *s);

/* Write a stand-alone C program of fewer than 200 lines; joins threads, and then sums call sites,
 * if it would be longer. 0, or negative with err: it is still too long. */
int emit_c(
    const struct verdict_result *verdict, struct program *steps, struct str *out, struct err *err);

#endif
