/*
 * framework_roles.h - inside verdict/: the roles of call sites, and the frameworks' own advice,
 * from the knowledge files. They sharpen a verdict; without them structure alone decides.
 */
#ifndef ANALYZER_VERDICT_FRAMEWORK_ROLES_H
#define ANALYZER_VERDICT_FRAMEWORK_ROLES_H

#include "verdict/framework/framework_frames.h"
#include "verdict/result.h"

/* Return the role of each call site, by index: the role that most of its live bytes have (its
 * heaviest stack's where nothing lives), or ROLE_NONE. The caller frees it. NULL: no memory. */
enum role *framework_roles(
    const struct verdict_result *r, const struct model *m, const struct callsites *callsites);

/* Adds the frameworks' own advice for a cause: of those in the stack, innermost first. */
void framework_fixes(const struct verdict_result *r, enum cause cause,
    const struct stack_view *stack, struct fix *fixes, size_t *count);

/* The same of the host's malloc, whoever owns it. */
void framework_malloc_fixes(
    const struct verdict_result *r, enum cause cause, struct fix *fixes, size_t *count);

#endif
