/*
 * ledger.h - puts every byte of the limit in exactly one row. The rows and `unaccounted` add up to
 * the limit, by construction; the tests check that `unaccounted` stays small.
 */
#ifndef ANALYZER_VERDICT_LEDGER_H
#define ANALYZER_VERDICT_LEDGER_H

#include "verdict/result.h"

/* A moment of r's process. */
struct ledger_input {
	const struct verdict_result *r;
	const struct levels *levels; /* at the moment */
	uint64_t age_ns; /* age of their sample of resident bytes */
	const char *at;
	bool with_claims; /* the candidates' claims get rows of their own, the best's first */
};

/* Rows that are looked up: the rest of the limit, and threads' stacks. */
#define LEDGER_FREE "free"
#define LEDGER_STACKS "stacks"
/* Row: stacks of threads that ended and that nobody joined. */
#define LEDGER_UNJOINED "stacks of ended threads"
/* Row: malloc's free memory, by its statistics. */
#define LEDGER_FREE_LISTS "allocator free lists"
/* Row: everything that malloc holds beside live blocks, if its statistics do not divide it. */
#define LEDGER_UNSPLIT "allocator overhead and free"
/* Rows: objects in the interpreter's arenas, and free memory there. */
#define LEDGER_ARENAS "interpreter arenas"
#define LEDGER_ARENAS_FREE "interpreter arenas, free"
/* Row: address space that malloc reserves to grow into. */
#define LEDGER_KEPT "kept to grow into"
/* Row: memory from before the recorder was attached, in each space. */
#define LEDGER_BEFORE "there before whyoom came"
/* Row: memory from after the process gave up its rights, and with them the recording. */
#define LEDGER_UNRECORDED "not recorded"

/* Fill *out. 0 or -ENOMEM. */
int ledger_make(const struct ledger_input *in, struct ledger *out);

/* For makers of a ledger: add a row, unless it is empty; at the end close the ledger, which puts
 * the rest of the limit in `unaccounted`. */
void ledger_row(struct ledger *ledger, const char *class, uint64_t bytes);
void ledger_close(struct ledger *ledger);
uint64_t ledger_sum(const struct ledger *ledger); /* of all rows */
/* Return the bytes of that row; 0: no such row. */
uint64_t ledger_get(const struct ledger *ledger, const char *class);
/* True if rows and `unaccounted` add up to the limit. */
bool ledger_adds_up(const struct ledger *ledger);

#endif
