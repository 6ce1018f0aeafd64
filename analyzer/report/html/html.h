/*
 * html.h - the format "html": a report as one page that needs nothing else. C writes the first
 * screen, which is whole without scripts; the pictures' data lies behind it in one block
 * (docs/page-data.md), and the page's own script draws them. Names come from traces: they are never
 * markup, and no control character reaches the page.
 */
#ifndef ANALYZER_REPORT_HTML_H
#define ANALYZER_REPORT_HTML_H

#include "report/format.h"
#include "report/html/page.h"
#include "report/report.h"

/* Append text that is fit for a terminal already, with markup escaped. */
void html_escape(struct str *out, const char *text);
/* Append any text: as str_safe(), with markup escaped. NULL: nothing. */
void html_text(struct str *out, const char *text);

/* A page's style and script: made by embed.c from assets/. */
struct html_asset {
	const unsigned char *text;
	unsigned bytes;
};
/* Append all until the page's body begins. `more`: a style beside the one of all pages, or NULL. */
void html_open(const char *title, const struct html_asset *more, struct str *out);
/* Append the room for the pictures, their data and their script. `rest`: what stands without
 * scripts, in words. */
void html_pictures(
    const struct html_asset *script, const char *rest, const struct str *data, struct str *out);

/* Append the first screen: the verdict, the ledger, the fixes, and what is not known. */
void screen_html(const struct report_view *v, const struct report_style *style, struct str *out);

/* fleet_page.c: the answers about a fleet as a page. */
void fleet_page_html(const struct fleet_page *p, struct str *out);

/* diff_screen.c, diff_page.c: the first screen of a comparison, and the data of its pictures. */
void diff_screen_html(const struct diff_view *v, struct str *out);
void diff_data_html(const struct diff_result *r, struct str *out);

extern const unsigned char page_css[], page_js[], page_diff_css[], page_diff_js[], page_fleet_css[];
extern const unsigned page_css_bytes, page_js_bytes, page_diff_css_bytes, page_diff_js_bytes,
    page_fleet_css_bytes;

#endif
