/*
 * still_runs.h - what a report adds about a process that still runs: when its memory will be full,
 * and why it would be.
 */
#ifndef ANALYZER_CMD_STILL_RUNS_H
#define ANALYZER_CMD_STILL_RUNS_H

#include "util/text/str.h"
#include "verdict/verdict.h"

/* Add a sentence or two to `out` if the result's process still runs, nothing failed, and its host
 * memory raises an alarm (verdict/forecast/forecast.h); else nothing. Reads the trace again. 0;
 * negative errno with err. */
int still_runs_note(const struct verdict_result *result, struct str *out, struct err *err);

#endif
