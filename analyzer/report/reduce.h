/*
 * reduce.h - the result of `whyoom reduce`, as text or JSON.
 */
#ifndef ANALYZER_REPORT_REDUCE_H
#define ANALYZER_REPORT_REDUCE_H

#include "reduce/reduce.h"
#include "report/text/style.h"

struct reduce_view {
	const struct reduce_result *result;
	const char *path; /* the small trace */
	const char *program; /* NULL: none was written */
};

void report_reduce_text(
    const struct reduce_view *v, const struct report_style *style, struct str *out);
/* Append one JSON object, schema 1: reduce-schema.json. */
void report_reduce_json(
    const struct reduce_view *v, const struct report_style *style, struct str *out);

#endif
