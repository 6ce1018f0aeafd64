/*
 * compare.h - inside diff/: the parts of a result, made from two sides that were read. facts.c puts
 * settings side by side, sentence.c makes the sentence.
 */
#ifndef ANALYZER_DIFF_COMPARE_H
#define ANALYZER_DIFF_COMPARE_H

#include "diff/judge.h"
#include "diff/match.h"
#include "diff/side.h"

/* A phase of each side, by number; SITE_NONE: that side lacks it. */
struct phase_pair {
	uint32_t a, b;
};

struct diff_sides {
	struct side a, b;
	struct pairs pairs;
	struct phase_pair phases[2 * SIDE_PHASES];
	uint32_t phase_count;
};

/* A stack on both sides: equal names within one line. */
struct twin {
	uint32_t pair;
	uint32_t chain_a, chain_b; /* SITE_NONE: that side lacks it */
	uint64_t a, b; /* bytes */
};

/* One space, while it is compared. */
struct comparison {
	const struct diff_sides *sides;
	const struct diff_request *request;
	struct diff_result *result;
	struct side_space *a, *b; /* NULL: that side lacks it */
	struct judge judge;
	struct diff_space *out;
	VEC(struct twin) twins; /* by pair */
	struct ranked_line {
		struct diff_line line;
		uint32_t pair; /* SITE_NONE: the arenas */
		uint64_t excess;
	} * list;
	size_t count;
};

extern const struct series compare_no_series; /* of a side that lacks the line */
static inline const struct series *compare_series(const struct side_space *space, uint32_t site)
{
	return space && site != SITE_NONE ? &space->series[site] : &compare_no_series;
}

/* Divide by the number of requests; 0: not asked. */
static inline uint64_t compare_per(uint64_t bytes, uint64_t requests)
{
	return requests ? bytes / requests : bytes;
}

/* chains.c: match the stacks, and add up what matches less than that; then list the largest
 * differences of each changed line. 0 or -ENOMEM. */
typedef VEC(struct diff_stack) compare_stacks_t;
int compare_stacks(struct comparison *c);
int compare_list_stacks(struct comparison *c, compare_stacks_t *stacks);
/* union.c: make the tree of both sides' stacks. Pre: the stacks are matched. 0 or -ENOMEM. */
int compare_trees(struct comparison *c);
/* work.c: fill c->judge. Pre: both sides of c->out are filled. 0 or -ENOMEM. */
int compare_work(struct comparison *c);

/* Fill spaces, lines, changes and stacks. 0 or -ENOMEM. */
int compare_spaces(
    const struct diff_sides *sides, const struct diff_request *request, struct diff_result *out);
/* Fill facts. 0 or -ENOMEM. */
int facts_read(const struct diff_sides *sides, struct diff_result *out);
/* Fill the sentence. 0 or -ENOMEM. */
int sentence_write(struct diff_result *out);

#endif
