/* html.c - see html.h. */
#include "report/html/html.h"

#include "report/format.h"
#include "report/parts.h"

void html_escape(struct str *out, const char *text)
{
	for (const char *p = text; *p;) {
		size_t plain = strcspn(p, "&<>\"'");

		str_add(out, p, plain);
		p += plain;
		if (*p)
			str_printf(out, "&#%d;", *p++);
	}
}

void html_text(struct str *out, const char *text)
{
	struct str safe = {0};

	str_safe(&safe, text ? text : "");
	html_escape(out, str_text(&safe));
	out->failed |= safe.failed;
	str_free(&safe);
}

/* Nothing is loaded and nothing is sent, whatever the page holds. */
static const char policy[] =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n";

static void report_html(
    const struct report_view *v, const struct report_style *style, struct str *out)
{
	str_puts(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
	str_puts(out, policy);
	str_puts(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		      "<meta name=\"generator\" content=\"whyoom " WHYOOM_VERSION "\">\n<title>");
	html_text(out, cause_name(v->result->verdict.cause));
	str_puts(out, " · whyoom</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n");
	str_add(out, (const char *)page_css, page_css_bytes);
	str_puts(out, "</style>\n</head>\n<body>\n");
	screen_html(v, style, out);
	if (v->page) {
		str_puts(out, "<div id=\"views\"></div>\n<noscript><p class=\"hint\">The pictures "
			      "need scripts; all of the verdict stands "
			      "above.</p></noscript>\n<script type=\"application/octet-stream\" "
			      "id=\"d\">");
		page_block(v->page, out);
		str_puts(out, "</script>\n<script>\n");
		str_add(out, (const char *)page_js, page_js_bytes);
		str_puts(out, "</script>\n");
	}
	str_puts(out, "</body>\n</html>\n");
}

const struct format format_html = {.name = "html", .report = report_html, .pictures = true};
