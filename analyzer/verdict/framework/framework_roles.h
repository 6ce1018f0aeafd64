/*
 * framework_roles.h - inside verdict/: what knowledge files say of a process' stacks. It sharpens;
 * without it everything is judged by structure alone.
 */
#ifndef ANALYZER_VERDICT_KNOWN_H
#define ANALYZER_VERDICT_KNOWN_H

#include "verdict/framework/framework_frames.h"
#include "verdict/result.h"

/* The role of the innermost frame that has one, of most of what lives at
 * each place (of its heaviest stack where nothing does), NONE where that has none; to be freed.
 * NULL: no memory. */
enum role *framework_roles(
    const struct verdict_result *r, const struct model *m, const struct callsites *callsites);

/* Adds the frameworks' own advice for a cause: of those in the stack, innermost first. */
void framework_fixes(const struct verdict_result *r, enum cause cause,
    const struct stack_view *stack, struct fix *fixes, size_t *count);

/* The same of the host's malloc, whoever owns it. */
void framework_malloc_fixes(
    const struct verdict_result *r, enum cause cause, struct fix *fixes, size_t *count);

#endif
