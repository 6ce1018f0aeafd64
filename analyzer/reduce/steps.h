/*
 * steps.h - a process' requests until its failure as a short list of steps, for a program to be
 * written from: repetitions are folded, in which numbers of blocks and sizes change evenly.
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
	STEP_DEVICE, /* of the driver's */
	STEP_DEVICE_FREE,
	STEP_WHATS
};

static inline bool step_is_release(enum step_what what)
{
	return what == STEP_FREE || what == STEP_UNMAP || what == STEP_DEVICE_FREE;
}

struct program_step {
	uint32_t rows, times; /* on the first of `rows` steps that are repeated; else 0 */
	enum step_what what;
	uint32_t thread; /* from 0, in the order in which they come */
	uint32_t block;
	int64_t block_step; /* more with each repetition */
	uint64_t size; /* bytes; where it is released, what it was */
	int64_t size_step;
	uint32_t stack; /* 0: of a release */
};

struct program {
	VEC(struct program_step) all; /* unfolded; the failing request is not among them */
	VEC(struct program_step) rows;
	uint64_t count; /* of steps, unfolded */
	uint32_t blocks, threads;
	struct program_step last; /* the request that is refused; size 0: it was killed */
	bool joined; /* threads' steps are made by one */
	bool summed; /* see steps_sum() */
	bool device; /* they are the driver's, not the host's */
	uint64_t live; /* bytes, at the failure */
	uint64_t requested; /* bytes, ever */
	uint64_t room; /* bytes that were left at the refusal, 0: not known */
	double touched; /* of a kill: the part of what lived that was resident */
	uint64_t resident; /* of a kill: bytes of it */
};

/* The verdict's subject. 0, or negative with err: it did not fail, or not by its own requests. */
int steps_read(const struct verdict_result *verdict, struct program *out, struct err *err);
void steps_fini(struct program *s);
/* As if one thread had made them all. */
void steps_join(struct program *s);

/* Only what lives at the failure, each place's at once and in blocks of its mean size. 0 or
 * -ENOMEM. */
int steps_sum(struct program *s);

/* A stand-alone program in C of fewer than 200 lines; threads are joined where it takes that, and
 * then places summed. 0, or negative with err: there are too many. */
int emit_c(
    const struct verdict_result *verdict, struct program *steps, struct str *out, struct err *err);

#endif
