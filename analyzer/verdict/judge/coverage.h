/*
 * coverage.h - was enough recorded to tell? No data must never read as healthy.
 */
#ifndef ANALYZER_VERDICT_COVERAGE_H
#define ANALYZER_VERDICT_COVERAGE_H

#include "verdict/failure/failure.h"

/* Fills *out; out->gap says what is missing when no verdict can rest on this, and *next what to
 * record next time (NULL: nothing). `end`: how it ended, where nothing is known to have run out;
 * else END_EXIT. */
void coverage_read(const struct model *m, const struct callsites *callsites,
    const struct trace_facts *facts, const struct levels *levels, struct ending end,
    struct coverage *out, const char **next);

#endif
