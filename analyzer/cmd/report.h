/*
 * report.h - for `whyoom run`: the verdict on the run that just ended.
 */
#ifndef ANALYZER_CMD_REPORT_H
#define ANALYZER_CMD_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "util/text/err.h"

/*
 * Print the verdict on the traces in `dir` to `out`, in at most ten lines, if something failed; if
 * nothing did, only with `always`. 0; negative errno with err.
 */
int report_after_run(const char *dir, FILE *out, bool always, struct err *err);

#endif
