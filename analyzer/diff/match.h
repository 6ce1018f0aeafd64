/*
 * match.h - inside diff/: which line of one side is which of the other. Functions are matched by
 * their lasting names; the lines of one function in their order, so that line numbers may move; and
 * what remains by all but one of function, file and caller, where that leaves no choice.
 */
#ifndef ANALYZER_DIFF_MATCH_H
#define ANALYZER_DIFF_MATCH_H

#include "diff/side.h"

/* A line on either side, or on one: the other is SITE_NONE. */
struct pair {
	uint32_t a, b; /* indices of sites */
	bool renamed; /* found without its function's or file's name */
};

struct pairs {
	VEC(struct pair) list; /* by site of B, then those of A alone */
	uint32_t *of_a, *of_b; /* by site: index of its pair */
};

/* Fill *out. 0 or -ENOMEM. */
int match_sites(
    const struct site *a, size_t a_count, const struct site *b, size_t b_count, struct pairs *out);
void match_fini(struct pairs *pairs);

#endif
