/*
 * processes_text.h - the part of the text report about the processes of a run.
 */
#ifndef ANALYZER_REPORT_PROCESSES_TEXT_H
#define ANALYZER_REPORT_PROCESSES_TEXT_H

#include "report/text/style.h"

/* More than one held what is worth a row, or was refused. */
bool processes_matter(const struct verdict_result *r);
/* A table with a row for each process that is worth one. */
void processes_text(
    const struct verdict_result *r, const struct report_style *style, struct str *out);

#endif
