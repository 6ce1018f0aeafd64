/*
 * decide.h - inside verdict/: from the ranked candidates of one space to the cause, how sure it is,
 * what is to blame, the evidence, and what would have fitted.
 */
#ifndef ANALYZER_VERDICT_DECIDE_H
#define ANALYZER_VERDICT_DECIDE_H

#include "verdict/result.h"

/* Fills r->verdict but for the words, from r->candidates, r->places and r->coverage. `next`: what
 * to record next time where that is known already, or NULL. */
void decide(struct verdict_result *r, bool failed, const char *next);
/* The frame of r->verdict.blame.stack that is to blame. */
void decide_blame(struct verdict_result *r, size_t frame);
/* Adds to r->what_if, from the candidates and r->failure. */
void decide_what_ifs(struct verdict_result *r);

#endif
