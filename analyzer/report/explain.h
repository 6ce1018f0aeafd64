/*
 * explain.h - the explanation of a log, as text or JSON. Names and texts come from the log: control
 * characters never reach the output.
 */
#ifndef ANALYZER_REPORT_EXPLAIN_H
#define ANALYZER_REPORT_EXPLAIN_H

#include "report/report.h"
#include "util/text/json.h"

/* Append one screen for a few messages; with verbose every message, its text and its numbers. */
void report_explain_text(
    const struct explanation *e, const struct report_style *style, struct str *out);
/* Append the messages in order; `of` says which recorded failure each is about, NULL: none. */
void report_explain_story(const struct explanation *e, const enum join *of,
    const struct report_style *style, struct str *out);
/* Append one JSON object: explain-schema.json. */
void report_explain_json(
    const struct explanation *e, const struct report_style *style, struct str *out);
/* Append the members of that object to one that is open; `of` as above. */
void report_explain_members(struct json *j, const struct explanation *e, const enum join *of);

#endif
