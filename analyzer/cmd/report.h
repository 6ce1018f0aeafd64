/*
 * report.h - for other commands: the verdict on the run that just ended, and the report as a page.
 */
#ifndef ANALYZER_CMD_REPORT_H
#define ANALYZER_CMD_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "util/text/err.h"

/*
 * Print the verdict on the traces in `dir` to `out` (NULL: nowhere), in at most ten lines, if
 * something failed; if nothing did, only with `always`. Then also write the report as a page to the
 * path `page`, unless that is NULL. 0; negative errno with err.
 */
int report_after_run(const char *dir, FILE *out, bool always, const char *page, struct err *err);

/* Write the report on a set of traces as a page. 0; negative errno with err. */
struct trace_set;
int report_page(const struct trace_set *set, const char *path, struct err *err);

/* Write the map at a moment as a page, in a format with pictures. 0; negative errno with err. */
struct moment_request;
struct output;
int report_map(const struct trace_set *set, const struct moment_request *moment,
    const struct output *output, struct err *err);

#endif
