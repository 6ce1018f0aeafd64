/*
 * decide.h - inside verdict/: decides, from the ranked candidates of one space, the cause and its
 * confidence, the frame to blame, the evidence, and what would have fit.
 */
#ifndef ANALYZER_VERDICT_DECIDE_H
#define ANALYZER_VERDICT_DECIDE_H

#include "verdict/result.h"

/* Fill r->verdict, without its words, from r->ranking, r->callsites and r->coverage. `failed`: the
 * process ran out. `next` says what to record the next time; NULL: this finds it. */
void decide(struct verdict_result *r, bool failed, const char *next);
/* True if the best finding is one that only a recording from the start shows, as a model that is
 * loaded, and the recorder was attached: then it is not claimed. */
bool decide_needs_beginning(const struct verdict_result *r);
/* Blame that frame of r->verdict.blame.stack. */
void decide_blame(struct verdict_result *r, size_t frame);
/* Add to the evidence, if there is room. */
void decide_fact(struct verdict *v, enum fact fact, double value);
/* Add to r->what_ifs, from r->ranking, the device's settings and r->failure. */
void decide_what_ifs(struct verdict_result *r);

#endif
