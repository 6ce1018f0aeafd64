/*
 * fixes.h - what to change, by cause. These are the words for any program; what knowledge files say
 * of a framework comes before them.
 */
#ifndef ANALYZER_VERDICT_FIXES_H
#define ANALYZER_VERDICT_FIXES_H

#include "util/arena.h"
#include "verdict/verdict.h"

/* Where a framework's own advice comes from: called for the cause and each frame of the blamed
 * stack, it adds to the list. NULL: there is none. */
typedef void (*fixes_hook)(void *arg, const char *cause, const struct stack_view *stack,
    struct fix *fixes, size_t *count, struct arena *arena);

void fixes_for(const struct verdict_result *r, const char *cause, fixes_hook hook, void *arg,
    struct fix *fixes, size_t *count, struct arena *arena);

#endif
