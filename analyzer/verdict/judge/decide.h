/*
 * decide.h - inside verdict/: from the ranked candidates of one space decide the cause, the
 * confidence in it, what to blame, the evidence, and what would have fitted.
 */
#ifndef ANALYZER_VERDICT_DECIDE_H
#define ANALYZER_VERDICT_DECIDE_H

#include "verdict/result.h"

/* Fill r->verdict, but for the words, from r->ranking, r->callsites and r->coverage. `failed`: the
 * process ran out. `next` says what to record the next time, or is NULL: then this finds it. */
void decide(struct verdict_result *r, bool failed, const char *next);
/* Blame that frame of r->verdict.blame.stack. */
void decide_blame(struct verdict_result *r, size_t frame);
/* Add to r->what_ifs, from r->ranking, the device's settings and r->failure. */
void decide_what_ifs(struct verdict_result *r);

#endif
