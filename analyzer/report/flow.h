/*
 * flow.h - the report's part on what went on: phases, requests and who held what for them, and what
 * each stage of a pipeline held.
 */
#ifndef ANALYZER_REPORT_FLOW_H
#define ANALYZER_REPORT_FLOW_H

#include "report/text/style.h"
#include "util/text/json.h"
#include "verdict/result.h"

/* A line of phases and requests where they are known; a table of stages from two of them on. */
void flow_text(const struct verdict_result *r, const struct report_style *style, struct str *out);
/* The members "phases", "requests" and "stages". */
void flow_json(struct json *j, const struct verdict_result *r);

#endif
