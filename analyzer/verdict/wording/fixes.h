/*
 * fixes.h - what to change, by cause: first the knowledge files' advice for the frameworks
 * involved, then advice for any program.
 */
#ifndef ANALYZER_VERDICT_FIXES_H
#define ANALYZER_VERDICT_FIXES_H

#include "verdict/result.h"

/* Fill r->verdict's fixes for its cause. The frameworks are those of the blamed stack; if it is
 * empty, of the failed request's. A fix is left out if there is no memory for it. */
void fixes_for(struct verdict_result *r);

#endif
