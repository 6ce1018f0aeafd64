/*
 * framework_roles.h - inside verdict/: the call sites' roles and the frameworks' advice, from the
 * knowledge files. They sharpen a verdict; without them structure alone decides.
 */
#ifndef ANALYZER_VERDICT_FRAMEWORK_ROLES_H
#define ANALYZER_VERDICT_FRAMEWORK_ROLES_H

#include "verdict/framework/framework_frames.h"
#include "verdict/result.h"

/* Return each call site's role, by index: that of most of its live bytes (of its heaviest stack, if
 * nothing lives), or ROLE_NONE. The caller frees it. NULL: no memory. */
enum role *framework_roles(
    const struct verdict_result *r, const struct model *m, const struct callsites *callsites);

/* Add the advice of the frameworks of the blamed stack, or else of the failed request's, for the
 * verdict's cause, innermost first: with `general` of those that merely compute, or else of all
 * others. */
void framework_fixes(struct verdict_result *r, bool general);

/* The same for the host's malloc, whoever owns it. */
void framework_malloc_fixes(struct verdict_result *r);

#endif
