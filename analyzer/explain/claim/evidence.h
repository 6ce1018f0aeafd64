/*
 * evidence.h - the last look at a line that no other rule understood: a word of failure or of lack
 * that stands near a word of memory. What exactly ran out such a line does not tell.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_EVIDENCE_H
#define ANALYZER_EXPLAIN_CLAIM_EVIDENCE_H

#include "explain/claim/claim.h"
#include "explain/claim/sentence.h"

/* CLAIM_UNSURE, CLAIM_UNSURE_DEVICE or CLAIM_NONE, for a sentence of `line`; s->at as in says.h. */
enum claim_kind evidence_of(struct sentence *s, const struct sentence *line);

#endif
