/*
 * reduce.h - what `whyoom reduce` says of what it made.
 */
#ifndef ANALYZER_REPORT_REDUCE_H
#define ANALYZER_REPORT_REDUCE_H

#include "reduce/reduce.h"
#include "report/text/style.h"
#include "util/text/str.h"

/* `path` is what was made; `program` NULL: none was. */
void report_reduce(const struct reduce_result *r, const char *path, const char *program, bool json,
    const struct report_style *style, struct str *out);

#endif
