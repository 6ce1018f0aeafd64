/*
 * html.h - the format "html": a report as one page that needs nothing else. C writes the first
 * screen, which is whole without scripts; the pictures' data lies behind it in one block
 * (docs/page-data.md), and the page's own script draws them. Names come from traces: they are never
 * markup, and no control character reaches the page.
 */
#ifndef ANALYZER_REPORT_HTML_H
#define ANALYZER_REPORT_HTML_H

#include "report/html/page.h"
#include "report/report.h"

/* Append text that is fit for a terminal already, with markup escaped. */
void html_escape(struct str *out, const char *text);
/* Append any text: as str_safe(), with markup escaped. NULL: nothing. */
void html_text(struct str *out, const char *text);

/* Append the first screen: the verdict, the ledger, the fixes, and what is not known. */
void screen_html(const struct report_view *v, const struct report_style *style, struct str *out);

/* The page's style and script: made by embed.c from assets/. */
extern const unsigned char page_css[], page_js[];
extern const unsigned page_css_bytes, page_js_bytes;

#endif
