/* coverage.h - was enough recorded to judge? A run without data must never look healthy. */
#ifndef ANALYZER_VERDICT_COVERAGE_H
#define ANALYZER_VERDICT_COVERAGE_H

#include "verdict/failure/failure.h"

/* Fill *out. If no verdict can rest on the recording, out->gap says what is missing, and *next what
 * to record the next time; else both are NULL. `end` is how the process ended, or END_EXIT if a
 * failure is known. */
void coverage_read(const struct model *m, const struct callsites *callsites,
    const struct levels *levels, struct ending end, struct coverage *out, const char **next);

/* True if the recorder was attached, and most of the limit was in use before: the cause may lie
 * there. */
bool coverage_mostly_before(const struct verdict_result *r);

#endif
