/*
 * lengths.h - how long the inputs of a process were, how the blocks scale with the length, and what
 * they would have been with shorter inputs.
 *
 * A length is what the program's marks say, in tokens. Without marks it is the size of the block
 * that one stack made for the input, in bytes: of all stacks whose sizes vary, the one that most
 * others follow. What a worker made before or after such a block is for the same input, whichever
 * fits better; see lengths_fit.c.
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

#define LENGTHS_SMALL 512u /* bytes: smaller blocks stay as they are */

enum lengths_source {
	LENGTHS_NONE, /* nothing there is larger for one input than for another */
	LENGTHS_MARKED,
	LENGTHS_SIZES,
};

/* A worker's input of that length. */
struct lengths_label {
	double length; /* 0: not known */
	uint32_t before; /* 1 + the worker's one before; 0: none */
	uint32_t unit; /* marked: the request */
};

struct lengths_block {
	uint64_t serial; /* of the host's blocks, or of the space's requests */
	uint64_t size;
	uint32_t stack, worker; /* stack: index into the stacks */
	uint32_t label; /* 1 + index; 0: of no input */
	bool refused;
};

struct lengths_stack {
	uint32_t stack;
	uint64_t largest, least;
	bool only_refused; /* no block came from there */
	uint64_t live; /* at the moment; of a device at its last refusal, or its peak */
	struct scaling_fit fit; /* of a block */
	bool after; /* its blocks are for the input of the label before theirs */
	struct scaling_fit held; /* marked, and `many`: of all that a request holds there */
	bool many; /* the longer, the more of them */
};

struct lengths {
	enum lengths_source source;
	double longest;
	uint32_t reference; /* sizes: the stack whose blocks are the lengths */
	VEC(struct lengths_block) blocks; /* by serial */
	VEC(uint32_t) ops; /* index of a block << 1, | 1: it is released */
	VEC(struct lengths_label) labels;
	VEC(double) units; /* the longest of each request's lengths */
	VEC(uint64_t) before; /* marked, by block: held by its request at its stack by then */
	VEC(struct lengths_stack) stacks;
	uint32_t workers;
	uint32_t refused; /* 1 + index of the last block that was; 0: none was */
	/* From the first block of the refused one's kind on: of the longest input that came to its
	 * end, and of the refused one. Length 0: there is none. */
	struct lengths_part {
		double length;
		size_t start, end; /* ops */
	} like, tried;
};

/* Read the lengths. `space`: "torch:0", ...; NULL: the host, whose refusal is the one at moment_ns.
 * 0, or negative with err. */
int lengths_read(
    struct feed feed, const char *space, uint64_t moment_ns, struct lengths *out, struct err *err);
void lengths_fini(struct lengths *l); /* accepts what is all zero */

/* All of these with inputs no longer than `most`. The index of a block by its serial; SIZE_MAX:
 * it is not among them. */
size_t lengths_find(const struct lengths *l, uint64_t serial);
uint64_t lengths_size(const struct lengths *l, size_t block, double most);
/* Bytes that the refused request would have gone on to acquire, as the requests did that were not
 * refused. */
uint64_t lengths_further(const struct lengths *l, double most);
/* Bytes that live less at the end, of stacks for which counts() is true; NULL: of all. */
uint64_t lengths_less(
    const struct lengths *l, double most, bool (*counts)(void *arg, uint32_t stack), void *arg);

/* lengths_fit.c: what follows what, once all is read. 0 or -ENOMEM. */
int lengths_judge(struct lengths *l);

#endif
