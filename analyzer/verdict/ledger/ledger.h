/*
 * ledger.h - every byte of the limit in exactly one row. The rows and `unaccounted` add up to the
 * limit by construction and by assertion; that `unaccounted` stays small is for the tests to hold.
 */
#ifndef ANALYZER_VERDICT_LEDGER_H
#define ANALYZER_VERDICT_LEDGER_H

#include "verdict/failure/supervised.h"
#include "verdict/failure/volume.h"
#include "verdict/result.h"

struct ledger_input {
	const struct model *model;
	const struct callsites *callsites;
	const struct failure_view *failure;
	const struct levels *levels; /* of the moment */
	uint64_t age_ns;
	uint64_t siblings; /* what lived in other processes that were recorded, bytes */
	const struct volume_shares *volume; /* of LIMIT_SHM */
	const char *at;
	const struct candidate *candidates; /* best first; what they claim gets rows of their own */
	size_t candidate_count;
	const enum role *roles; /* by place; NULL: nothing is known */
};

/* The row of what malloc holds free, by its own account. */
#define LEDGER_FREE_LISTS "allocator free lists"
/* All that malloc holds beside live blocks, where that is not told apart. */
#define LEDGER_UNSPLIT "allocator overhead and free"
/* And the interpreter in its arenas. */
#define LEDGER_ARENAS_FREE "interpreter arenas, free"
/* And of the address space that it has taken for its arenas, beyond that. */
#define LEDGER_KEPT "kept to grow into"

/* What came since rights were given up and nothing was recorded any more. */
#define LEDGER_UNRECORDED "not recorded"

int ledger_make(const struct ledger_input *in, struct ledger *out); /* 0 or -ENOMEM */

/* For who makes one: a row, which is left out when it is empty; then what is left of the limit. */
void ledger_row(struct ledger *ledger, const char *class, uint64_t bytes);
void ledger_close(struct ledger *ledger);
/* The bytes of that row; 0 when there is none. */
uint64_t ledger_get(const struct ledger *ledger, const char *class);
/* True when rows and unaccounted add up to the limit. */
bool ledger_adds_up(const struct ledger *ledger);

#endif
