/*
 * ledger_text.h - where the bytes of the limit were, as a table.
 */
#ifndef ANALYZER_REPORT_LEDGER_TEXT_H
#define ANALYZER_REPORT_LEDGER_TEXT_H

#include "report/text/style.h"

/* With style->verbose every row, with exact bytes where there is room for them; otherwise small
 * rows are added up in one, and that is said. What it prints adds up to the limit in both. */
void ledger_text(const struct verdict_result *r, const struct report_style *style, struct str *out);

#endif
