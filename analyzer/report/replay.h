/*
 * replay.h - the outcome of a replay, as text or JSON.
 */
#ifndef ANALYZER_REPORT_REPLAY_H
#define ANALYZER_REPORT_REPLAY_H

#include "replay/replay.h"
#include "report/report.h"

void report_replay_text(
    const struct replay_result *r, const struct report_style *style, struct str *out);
/* Append one JSON object, schema 1: replay-schema.json. */
void report_replay_json(
    const struct replay_result *r, const struct report_style *style, struct str *out);

#endif
