/*
 * wrappers.h - functions that only hand out memory for others (an xmalloc, a pool, a buffer class):
 * the innermost frame of one's own, but not whom a person would blame. Told by behaviour, not by
 * name: what they make for one caller is of another size, or of another fate, than what they make
 * for the next.
 */
#ifndef ANALYZER_MODEL_WRAPPERS_H
#define ANALYZER_MODEL_WRAPPERS_H

#include "model/callsite/blame.h"
#include "model/feed.h"

struct wrapper_input {
	uint32_t stack; /* 0: unknown, and the frame is -1 */
	uint64_t total_bytes, total_count; /* until the moment */
	uint64_t largest; /* of its blocks */
	int frame; /* out: blame_frame()'s, or its caller, where that was a wrapper; or -1 */
};

/* Told of each item at every look at its stack, the last time with the frame that stays; the marks
 * are those of the path. */
struct wrapper_witness {
	void *arg; /* `look` may be NULL */
	void (*look)(void *arg, size_t item, const struct stack_path *path,
	    const blame_marks_t *marks, int frame);
};

/* 0 or -ENOMEM. */
int wrappers_step_out(const struct feed *feed, const struct blame_context *context,
    struct wrapper_input *list, size_t count, struct wrapper_witness witness);

#endif
