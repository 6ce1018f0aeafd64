/*
 * parts.h - the parts that the results are made of, as text and as JSON. Names and texts come from
 * traces and logs: control characters never reach the output.
 */
#ifndef ANALYZER_REPORT_PARTS_H
#define ANALYZER_REPORT_PARTS_H

#include "diff/diff.h"
#include "report/text/style.h"
#include "trace/trace.h"
#include "util/text/json.h"
#include "verdict/device/device.h"

/* Append that the trace is damaged, before anything else is said; nothing if all is whole. */
void damage_text(
    const struct trace_set_damage *d, const struct report_style *style, struct str *out);
/* Append the member `damage`; null if all is whole. */
void damage_json(struct json *j, const struct trace_set_damage *d);

/* Append "pid 17, killed by SIGKILL after 3 s: ", which the command line follows. */
void end_text(const struct verdict_result *r, struct str *out);
/* Append a sentence for each space that grows, of a process that still runs; else nothing.
 * prospect_text.c */
void prospect_text(
    const struct verdict_result *r, const struct report_style *style, struct str *out);
/* The same of one space, without its end and style. */
void prospect_sentence(const struct prospect_space *s, struct str *out);
/* Append the member "prospect". */
void prospect_json(struct json *j, const struct verdict_result *r);
/* Append the second cause, if it is likely enough to be named. */
void rival_text(const struct verdict_result *r, const struct report_style *style, struct str *out);
/* Append the value of a piece of evidence, in words. */
void evidence_text(const struct evidence *e, struct str *out);
/* Append how the recording was made, an item for each thing that is missing from it. */
void recording_text(
    const struct verdict_result *r, const struct report_style *style, struct str *out);

/* Append where the bytes of the limit were, as a table. With style->verbose every row, with exact
 * bytes where there is room for them; otherwise small rows are added up in one, and that is said.
 * What it prints adds up to the limit in both. */
void ledger_text(const struct verdict_result *r, const struct report_style *style, struct str *out);

/* Return the class of the ledger's row that the verdict blames; NULL: none of this ledger's. */
const char *ledger_blamed(const struct verdict_result *r, const struct ledger *l);

/* Append the device's part: the refusal, what its memory looked like, and the holders. If the
 * device did not fail, only with style->verbose. Needs r->device. */
void device_text(const struct verdict_result *r, const struct report_style *style, struct str *out);
/* Append one device, as a member of that name or, for NULL, as an element of an array. */
void device_json(struct json *j, const char *key, const struct device_report *d);
/* Append the member "unattributed": the bytes that no event explains, over time. */
void device_samples_json(struct json *j, const struct device_sample *samples, size_t count);
/* Append the member "spaces". */
void spaces_json(struct json *j, const struct verdict_result *r);

/* Append the curves of both sides, aligned by phase, and the numbers of each phase; where they do
 * not differ, only with style->verbose. diff_phases.c */
void diff_phases_text(
    const struct diff_space *s, const struct report_style *style, struct str *out);

/* Append a line of phases and requests, if known; a table of stages from two of them on. */
void flow_text(const struct verdict_result *r, const struct report_style *style, struct str *out);
/* Append the members "phases", "requests" and "stages". */
void flow_json(struct json *j, const struct verdict_result *r);

/* Return whether more than one process held what is worth a row, or was refused. */
bool processes_matter(const struct verdict_result *r);
/* Append a table with a row for each process that is worth one. */
void processes_text(
    const struct verdict_result *r, const struct report_style *style, struct str *out);

/* Append a log's messages in order; `of` says which recorded failure each is about, NULL: none. */
void story_text(const struct explanation *e, const enum join *of, const struct report_style *style,
    struct str *out);
/* Append the members "messages" and "verdict" of an explanation; `of` as above. */
void explanation_json(struct json *j, const struct explanation *e, const enum join *of);
/* Append the member "runner_up" of a verdict; null for CAUSE_UNKNOWN. */
void runner_up_json(struct json *j, enum cause cause, double confidence);

#endif
