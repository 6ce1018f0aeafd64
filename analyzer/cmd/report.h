/*
 * report.h - for other commands: the verdict on the run that just ended, and the report as a page.
 */
#ifndef ANALYZER_CMD_REPORT_H
#define ANALYZER_CMD_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "util/text/err.h"
#include "util/text/str.h"

/* What to do with the verdict on a run that has ended. */
struct report_end {
	FILE *out; /* print it there, in at most ten lines; NULL: nowhere */
	bool always; /* even if nothing failed */
	const char *page; /* then write the report as a page to this path; NULL: no page */
	struct str *last_word; /* append report_last_word(); NULL: not wanted */
};

/* Judge the traces in `dir`. 0; negative errno with err. */
int report_after_run(const char *dir, const struct report_end *end, struct err *err);

/* Write the report on a set of traces as a page. 0; negative errno with err. */
struct trace_set;
int report_page(const struct trace_set *set, const char *path, struct err *err);

/* Write the map at a moment as a page, in a format with pictures. 0; negative errno with err. */
struct moment_request;
struct output;
int report_map(const struct trace_set *set, const struct moment_request *moment,
    const struct output *output, struct err *err);

#endif
