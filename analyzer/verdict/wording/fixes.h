/*
 * fixes.h - what to change, by cause: first the knowledge files' advice for the frameworks
 * involved, then advice for any program.
 */
#ifndef ANALYZER_VERDICT_FIXES_H
#define ANALYZER_VERDICT_FIXES_H

#include "util/arena.h"
#include "verdict/result.h"

/* Fill fixes[FIXES_MAX] and *count for that cause. The frameworks are those of the blamed stack; if
 * it is empty, of the failed request's. The texts belong to `arena`; a fix is left out if there is
 * no memory for it. */
void fixes_for(const struct verdict_result *r, enum cause cause, struct fix *fixes, size_t *count,
    struct arena *arena);

#endif
