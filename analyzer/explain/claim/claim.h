/*
 * claim.h - reads one line of a log, of any program, for a claim that memory ran out: a refused
 * request, a limit that was reached, a kill. Or for something that reads like it: a full disk, a
 * quota, a prompt that is too long, a limit on threads.
 *
 * Advice, settings, source code and what a program got over are no claims.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_CLAIM_H
#define ANALYZER_EXPLAIN_CLAIM_CLAIM_H

#include "explain/claim/amounts.h"

/* What ran out. The knowledge files have a message for each, by the name. */
enum claim_kind {
	CLAIM_NONE,
#define CLAIM(id, name) CLAIM_##id,
#include "explain/claim/claims.def"
	CLAIM_COUNT
};

struct claim {
	enum claim_kind kind;
	struct amounts amounts;
};

/* Every line that has a claim has one of these texts. NULL ends the list. */
extern const char *const claim_needles[];

const char *claim_name(enum claim_kind kind); /* "device"; "" for CLAIM_NONE */
/* A failure and memory in one line, and no more: another reading of it outranks that. */
bool claim_is_unsure(enum claim_kind kind);
/* "  Size: 33554432", "  3.4 GB required": a key and its number, as programs list behind a message.
 * Adds what it says.
 */
bool claim_read_key(const char *line, size_t bytes, struct amounts *out);
/* Read a line, or some lines that are one. True: it is a claim. */
bool claim_read(const char *line, size_t bytes, struct claim *out);

#endif
