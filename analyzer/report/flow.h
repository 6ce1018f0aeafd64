/*
 * flow.h - the report's part on phases, requests and stages of a pipeline, and the memory of each.
 */
#ifndef ANALYZER_REPORT_FLOW_H
#define ANALYZER_REPORT_FLOW_H

#include "report/text/style.h"
#include "util/text/json.h"
#include "verdict/result.h"

/* Append a line of phases and requests, if known; a table of stages from two of them on. */
void flow_text(const struct verdict_result *r, const struct report_style *style, struct str *out);
/* Append the members "phases", "requests" and "stages". */
void flow_json(struct json *j, const struct verdict_result *r);

#endif
