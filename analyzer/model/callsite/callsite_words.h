/*
 * callsite_words.h - inside model/: function, file and line to blame for each stack, the
 * framework's part that this line called, and whether a module was being imported. Reads the stacks
 * in order of their ids, since neighbours share most frames; keeps no stack's symbols as a whole.
 */
#ifndef ANALYZER_MODEL_CALLSITE_WORDS_H
#define ANALYZER_MODEL_CALLSITE_WORDS_H

#include "model/callsite/blame.h"
#include "model/feed.h"

/* Strings are the feed's. */
struct callsite_words {
	const char *function, *file; /* "(unknown)" if no frame is to blame; file NULL */
	const char *part, *part_file; /* of blame_part(); NULL: none */
	uint32_t stack, line;
	enum owner owner;
	bool python, import;
};

struct callsite_stack {
	uint32_t stack;
	uint64_t total_bytes, total_count, largest; /* until the moment */
};

/* Fill out[i] for stacks[i]. 0 or -ENOMEM. */
int callsite_words_read(const struct feed *feed, const struct blame_context *context,
    const struct callsite_stack *stacks, size_t count, struct callsite_words *out);

#endif
