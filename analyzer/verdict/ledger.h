/*
 * ledger.h - every byte of the limit in exactly one row. The rows and `unaccounted` add up to the
 * limit by construction and by assertion; that `unaccounted` stays small is for the tests to hold.
 */
#ifndef ANALYZER_VERDICT_LEDGER_H
#define ANALYZER_VERDICT_LEDGER_H

#include "verdict/supervised.h"
#include "verdict/verdict.h"

struct ledger_input {
	const struct model *model;
	const struct places *places;
	const struct failure_view *failure;
	const struct levels *levels; /* of the moment */
	uint64_t age_ns;
	const char *at;
	const struct candidate *candidates; /* best first; what they claim gets rows of their own */
	size_t candidate_count;
	const char *interpreter; /* path, or NULL */
};

void ledger_make(const struct ledger_input *in, struct ledger *out);
/* True when rows and unaccounted add up to the limit. */
bool ledger_adds_up(const struct ledger *ledger);
const char *ledger_class_of(const char *cause); /* the row of what a cause claims */

#endif
