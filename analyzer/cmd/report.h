/*
 * report.h - for `whyoom run`: the verdict on what it just watched.
 */
#ifndef ANALYZER_CMD_REPORT_H
#define ANALYZER_CMD_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "util/text/err.h"

/*
 * Prints the verdict on the traces in `dir` to `out`, in at most ten lines, when something failed;
 * nothing when nothing did, unless `always`. 0; negative errno with err.
 */
int report_after_run(const char *dir, FILE *out, bool always, struct err *err);

#endif
