/*
 * vote.h - which causes a message speaks for, and how strongly: what its table entry says, what its
 * numbers say, what the traceback before it says.
 */
#ifndef ANALYZER_EXPLAIN_VOTE_H
#define ANALYZER_EXPLAIN_VOTE_H

#include "explain/explain.h"
#include "util/text/str.h"

#define VOTES_MAX 12u

struct votes {
	struct vote {
		enum cause cause;
		double confidence;
	} list[VOTES_MAX];
	size_t count;
};

/* The strongest claim for a cause counts. */
void votes_add(struct votes *votes, enum cause cause, double confidence);
/* Two independent claims for one cause are stronger than each. */
void votes_combine(struct votes *votes, enum cause cause, double confidence);
/* Strongest first; of equals, as added. */
void votes_sort(struct votes *votes);

/* All that one message says. When its numbers say something, `words` gets that, else it stays
 * empty. */
void vote_of_message(const struct explain_message *m, struct votes *votes, struct str *words);

#endif
