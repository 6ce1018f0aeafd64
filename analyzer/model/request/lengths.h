/*
 * lengths.h - the input lengths of a process, how the blocks scale with them, and how large the
 * blocks would have been with shorter inputs.
 *
 * A length comes from the program's marks, in tokens. Without marks it is the size, in bytes, of a
 * block that one reference stack made for the input: of all stacks whose sizes vary, the one that
 * most others follow. The blocks that a worker made before or after such a block belong to the same
 * input, whichever fits better; see lengths_fit.c.
 *
 * One pass over the feed until a moment. Memory grows with blocks of LENGTHS_SMALL bytes or more.
 * One thread.
 */
#ifndef ANALYZER_MODEL_LENGTHS_H
#define ANALYZER_MODEL_LENGTHS_H

#include <stdbool.h>

#include "model/callsite/scaling.h"
#include "model/feed.h"
#include "util/map.h"
#include "util/vec.h"

#define LENGTHS_SMALL 512u /* bytes: smaller blocks keep their size */

enum lengths_source {
	LENGTHS_NONE, /* no size depends on the input */
	LENGTHS_MARKED,
	LENGTHS_SIZES,
};

/* An input of one worker. */
struct lengths_label {
	double length; /* 0: unknown */
	uint32_t before; /* 1 + the worker's previous label; 0: none */
	uint32_t unit; /* marks: the request */
};

struct lengths_block {
	uint64_t serial; /* serial of the host's block, or of the space's request */
	uint64_t size;
	uint32_t stack, worker; /* stack: index into stacks */
	uint32_t label; /* 1 + index; 0: none */
	bool refused;
};

struct lengths_stack {
	uint32_t stack;
	uint64_t largest, least;
	bool only_refused; /* the stack has a refused request, but no block */
	uint64_t live; /* at the moment; on a device at its last refusal, or at its peak */
	struct scaling_fit fit; /* of each block's size */
	bool after; /* its blocks belong to the previous label */
	struct scaling_fit held; /* marks, and `many`: of all bytes that a request holds there */
	bool many; /* longer inputs make more blocks */
};

struct lengths {
	enum lengths_source source;
	double longest;
	uint32_t reference; /* sizes: the reference stack */
	VEC(struct lengths_block) blocks; /* by serial */
	VEC(uint32_t) ops; /* index of a block << 1; | 1: its release */
	VEC(struct lengths_label) labels;
	VEC(double) units; /* the longest length of each request */
	VEC(uint64_t) before; /* marks, by block: bytes that its request held at its stack before */
	VEC(struct lengths_stack) stacks;
	uint32_t workers;
	uint32_t refused; /* 1 + index of the last refused block; 0: none */
	/* Stretches that start with a block of the refused one's kind: one for the longest input
	 * that finished, one for the refused input. Length 0: none. */
	struct lengths_part {
		double length;
		size_t start, end; /* indices into ops */
	} like, tried;
};

/* Read the lengths. `space` is "torch:0" and the like; NULL is the host, whose refusal is the one
 * at moment_ns. 0, or negative with err. */
int lengths_read(
    struct feed feed, const char *space, uint64_t moment_ns, struct lengths *out, struct err *err);
void lengths_fini(struct lengths *l); /* accepts a zeroed struct */

/*
 * The functions below assume inputs no longer than `most`.
 *
 * Find a block's index by its serial; SIZE_MAX: the list does not have it.
 */
size_t lengths_find(const struct lengths *l, uint64_t serial);
uint64_t lengths_size(const struct lengths *l, size_t block, double most);
/* Return the bytes that the refused request would have acquired later, as finished requests did. */
uint64_t lengths_further(const struct lengths *l, double most);
/* Return how many fewer bytes live at the end, over stacks for which counts() is true; NULL:
 * all. */
uint64_t lengths_less(
    const struct lengths *l, double most, bool (*counts)(void *arg, uint32_t stack), void *arg);

/* lengths_fit.c: fit the stacks once everything is read. 0 or -ENOMEM. */
int lengths_judge(struct lengths *l);

#endif
