/*
 * flow.h - the report's part on phases, on requests and the memory held for them, and on the memory
 * of each stage of a pipeline.
 */
#ifndef ANALYZER_REPORT_FLOW_H
#define ANALYZER_REPORT_FLOW_H

#include "report/text/style.h"
#include "util/text/json.h"
#include "verdict/result.h"

/* Append a line of phases and requests, if they are known; a table of stages if there are two or
 * more. */
void flow_text(const struct verdict_result *r, const struct report_style *style, struct str *out);
/* Append the members "phases", "requests" and "stages". */
void flow_json(struct json *j, const struct verdict_result *r);

#endif
