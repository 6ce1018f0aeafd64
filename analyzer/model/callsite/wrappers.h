/*
 * wrappers.h - functions that only allocate for their callers: an xmalloc, a pool, a buffer class.
 * They are the innermost frame of the user's code, but not the frame to blame. Recognised by
 * behaviour, not by name: their blocks for one caller have another size than those for the next.
 */
#ifndef ANALYZER_MODEL_WRAPPERS_H
#define ANALYZER_MODEL_WRAPPERS_H

#include "model/callsite/blame.h"
#include "model/feed.h"

struct wrapper_input {
	uint32_t stack; /* 0: unknown, with frame -1 */
	uint64_t total_bytes, total_count; /* until the moment */
	uint64_t largest; /* largest block */
	int frame; /* out: blame_frame()'s result, or the caller of a wrapper; or -1 */
};

/* Callback for each item in every round, the last with the final frame; marks are the path's. */
struct wrapper_witness {
	void *arg; /* `look` may be NULL */
	void (*look)(void *arg, size_t item, const struct stack_path *path,
	    const blame_marks_t *marks, int frame);
};

/* Find the frame to blame for each item, and replace wrappers by their callers, round after round.
 * 0 or -ENOMEM. */
int wrappers_step_out(const struct feed *feed, const struct blame_context *context,
    struct wrapper_input *list, size_t count, struct wrapper_witness witness);

#endif
