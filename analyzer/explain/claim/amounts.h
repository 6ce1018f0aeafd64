/*
 * amounts.h - which of a sentence's numbers was asked for, used, the limit, or free, by the words
 * near each, whatever the wording.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_AMOUNTS_H
#define ANALYZER_EXPLAIN_CLAIM_AMOUNTS_H

#include "explain/claim/lexemes.h"

enum amount {
	AMOUNT_ASKED,
	AMOUNT_USED,
	AMOUNT_LIMIT,
	AMOUNT_FREE,
	AMOUNT_PIECE, /* the largest piece that is free */
	AMOUNT_COUNT,
};

struct amounts {
	bool said[AMOUNT_COUNT];
	uint64_t bytes[AMOUNT_COUNT];
	size_t sizes; /* numbers that are bytes, with or without a meaning */
	bool counts; /* a number of tokens, threads or the like is there */
	uint64_t other; /* the first size whose meaning no word tells */
	bool other_said;
};

/* Read the lexemes from `from` to `to`, and add to what `out` has: what is there stays. */
void amounts_read(struct amounts *out, const struct lexemes *l, size_t from, size_t to);

#endif
