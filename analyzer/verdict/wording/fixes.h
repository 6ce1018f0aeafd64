/*
 * fixes.h - what to change, by cause. These are the words for any program; what knowledge files say
 * of a framework comes before them.
 */
#ifndef ANALYZER_VERDICT_FIXES_H
#define ANALYZER_VERDICT_FIXES_H

#include "util/arena.h"
#include "verdict/result.h"

/* Of the frameworks in the blamed stack, or else in that of the request that failed; then those for
 * any program. */
void fixes_for(const struct verdict_result *r, enum cause cause, struct fix *fixes, size_t *count,
    struct arena *arena);

#endif
