/*
 * wrappers.h - functions that only hand out memory for others (an xmalloc, a pool, a buffer class):
 * the innermost frame of one's own, but not whom a person would blame. Told by behaviour, not by
 * name: what they make for one caller is of another size, or of another fate, than what they make
 * for the next.
 */
#ifndef ANALYZER_MODEL_WRAPPERS_H
#define ANALYZER_MODEL_WRAPPERS_H

#include "model/blame.h"
#include "model/feed.h"

struct wrapper_input {
	uint32_t stack;
	uint64_t total_bytes, total_count; /* of its site, until the moment */
	int frame; /* in: blame_frame()'s; out: its caller, where that was a wrapper */
};

/* 0 or -ENOMEM. Frames of -1 stay. */
int wrappers_step_out(const struct feed *feed, const struct blame_context *context,
    struct wrapper_input *list, size_t count);

#endif
