/*
 * vote.h - the causes that a message supports, and how strongly, by its entry in the knowledge
 * files, its numbers and the traceback before it.
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
	const char *advice; /* what the numbers advise in place of the framework's fixes, or NULL */
};

/* Add a vote; the strongest one for a cause counts. */
void votes_add(struct votes *votes, enum cause cause, double confidence);
/* Add an independent vote: two for one cause are stronger than each. */
void votes_combine(struct votes *votes, enum cause cause, double confidence);
/* Sort by confidence, strongest first; equal ones stay in order. */
void votes_sort(struct votes *votes);

/* Returns a function of the traceback whose role supports the cause, or NULL. */
const char *vote_function_of(const struct traceback *traceback, enum cause cause);

/* Collect the votes of one message. `words` gets a sentence if its numbers decide something; else
 * it stays empty. */
void vote_of_message(const struct explain_message *m, struct votes *votes, struct str *words);

#endif
