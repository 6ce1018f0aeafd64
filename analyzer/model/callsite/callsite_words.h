/*
 * callsite_words.h - inside model/: what the words of each stack say of its place: the line to
 * blame, the framework's part that it called, whether a module was being imported. Stacks are gone
 * through in the order of their ids, in which neighbours share most of their frames; no stack's
 * words are kept as a whole.
 */
#ifndef ANALYZER_MODEL_PLACE_WORDS_H
#define ANALYZER_MODEL_PLACE_WORDS_H

#include "model/callsite/blame.h"
#include "model/feed.h"

/* Strings are the feed's. */
struct place_words {
	const char *function, *file; /* "(unknown)" where no frame is to blame; file NULL */
	const char *part, *part_file; /* of blame_part(); NULL: there is none */
	uint32_t stack, line;
	enum owner owner;
	bool python, import;
};

struct place_site {
	uint32_t stack;
	uint64_t total_bytes, total_count, largest; /* until the moment */
};

/* The words of each site's stack, in the order of the sites. 0 or -ENOMEM. */
int place_words_read(const struct feed *feed, const struct blame_context *context,
    const struct place_site *sites, size_t count, struct place_words *out);

#endif
