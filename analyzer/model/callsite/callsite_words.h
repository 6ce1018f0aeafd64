/*
 * callsite_words.h - inside model/: what the words of each stack say of its call site: the line to
 * blame, the framework's part that it called, whether a module was being imported. Stacks are gone
 * through in the order of their ids, in which neighbours share most of their frames; no stack's
 * words are kept as a whole.
 */
#ifndef ANALYZER_MODEL_CALLSITE_WORDS_H
#define ANALYZER_MODEL_CALLSITE_WORDS_H

#include "model/callsite/blame.h"
#include "model/feed.h"

/* Strings are the feed's. */
struct callsite_words {
	const char *function, *file; /* "(unknown)" where no frame is to blame; file NULL */
	const char *part, *part_file; /* of blame_part(); NULL: there is none */
	uint32_t stack, line;
	enum owner owner;
	bool python, import;
};

struct callsite_stack {
	uint32_t stack;
	uint64_t total_bytes, total_count, largest; /* until the moment */
};

/* The words of each stack, in the order of the stacks. 0 or -ENOMEM. */
int callsite_words_read(const struct feed *feed, const struct blame_context *context,
    const struct callsite_stack *stacks, size_t count, struct callsite_words *out);

#endif
