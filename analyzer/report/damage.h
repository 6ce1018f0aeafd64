/*
 * damage.h - says that a trace is damaged, before the report says anything else.
 */
#ifndef ANALYZER_REPORT_DAMAGE_H
#define ANALYZER_REPORT_DAMAGE_H

#include "report/text/style.h"
#include "trace/trace.h"
#include "util/text/json.h"

/* Append the damage; nothing if all is whole. */
void report_damage_text(
    const struct trace_set_damage *d, const struct report_style *style, struct str *out);
/* Append the member `damage`; null if all is whole. */
void report_damage_json(struct json *j, const struct trace_set_damage *d);

#endif
