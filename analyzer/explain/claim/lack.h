/*
 * lack.h - what reads like a lack of memory and is none, or not for certain: a disk, a quota, a
 * prompt, threads, a fault, a kill without a reason.
 */
#ifndef ANALYZER_EXPLAIN_CLAIM_LACK_H
#define ANALYZER_EXPLAIN_CLAIM_LACK_H

#include "explain/claim/claim.h"
#include "explain/claim/sentence.h"

/* A limit on locked memory (RLIMIT_MEMLOCK) refuses what memory there is. */
bool lack_is_locked(const struct sentence *line);
/* Sets s->at to where the sentence ends: any word of it may make it a possibility. */
enum claim_kind lack_of(struct sentence *s);

#endif
