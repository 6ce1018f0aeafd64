/*
 * fixes.h - what to change, by cause: first what knowledge files say of the frameworks involved,
 * then advice for any program.
 */
#ifndef ANALYZER_VERDICT_FIXES_H
#define ANALYZER_VERDICT_FIXES_H

#include "util/arena.h"
#include "verdict/result.h"

/* Fill fixes[FIXES_MAX] and *count for that cause. The frameworks are those of the blamed stack, or
 * where it is empty of the failed request's. The texts belong to `arena`; where that has no memory,
 * the fix is left out. */
void fixes_for(const struct verdict_result *r, enum cause cause, struct fix *fixes, size_t *count,
    struct arena *arena);

#endif
