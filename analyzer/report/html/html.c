/* html.c - see html.h. */
#include "report/html/html.h"

#include "report/parts.h"
#include "util/text/fmt.h"

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

void html_open(const char *title, const struct html_asset *more, struct str *out)
{
	str_puts(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
	str_puts(out, policy);
	str_puts(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		      "<meta name=\"generator\" content=\"whyoom " WHYOOM_VERSION "\">\n<title>");
	html_text(out, title);
	str_puts(out, " · whyoom</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n");
	str_add(out, (const char *)page_css, page_css_bytes);
	if (more)
		str_add(out, (const char *)more->text, more->bytes);
	str_puts(out, "</style>\n</head>\n<body>\n");
}

void html_pictures(
    const struct html_asset *script, const char *rest, const struct str *data, struct str *out)
{
	str_printf(out,
	    "<div id=\"views\"></div>\n<noscript><p class=\"hint\">The pictures need scripts; "
	    "%s stands above.</p></noscript>\n<script type=\"application/octet-stream\" id=\"d\">",
	    rest);
	str_add(out, str_text(data), data->length);
	out->failed |= data->failed;
	str_puts(out, "</script>\n<script>\n");
	str_add(out, (const char *)script->text, script->bytes);
	str_puts(out, "</script>\n");
}

static void begin(const char *title, struct str *out)
{
	html_open(title, NULL, out);
	str_puts(out, "<header><b class=\"brand\">whyoom</b><div id=\"tools\"></div></header>\n");
}

/* The pictures' data and their script; they are drawn into the element "views". */
static void end(const struct page *page, struct str *out)
{
	if (page) {
		page_blocks(page, out);
		str_puts(out, "<script>\n");
		str_add(out, (const char *)page_js, page_js_bytes);
		str_puts(out, "</script>\n");
	}
	str_puts(out, "</body>\n</html>\n");
}

/* The map as a table; without one, what is asked for says why. */
static void table(const struct page *page, bool asked, struct str *out)
{
	struct str text = {0};

	page_map_table(page, &text);
	if (!text.length && asked)
		str_puts(out, "<section id=\"layout\"><p>No block was live there at that moment, "
			      "or blocks of "
			      "more call stacks than a page can name.</p></section>\n");
	if (text.length) {
		str_printf(out,
		    "<section id=\"layout\"><details%s><summary>The map as a "
		    "table</summary>\n",
		    asked ? " open" : "");
		str_add(out, str_text(&text), text.length);
		str_puts(out, "</details></section>\n");
	}
	out->failed |= text.failed;
	str_free(&text);
}

static void report_html(
    const struct report_view *v, const struct report_style *style, struct str *out)
{
	begin(cause_name(v->result->verdict.cause), out);
	str_puts(out, "<main>\n");
	screen_html(v, style, out);
	if (v->page)
		table(v->page, false, out);
	str_puts(out, "</main>\n");
	if (v->page)
		str_puts(out, "<div id=\"views\"></div>\n<noscript><p class=\"hint\">The pictures "
			      "need scripts; all of the verdict stands above.</p></noscript>\n");
	end(v->page, out);
}

/* "Map of torch:0 at the failure, after 12.3 s" */
static void map_title(const struct page_map *asked, struct str *out)
{
	bool named = !strpbrk(asked->at, "0123456789");
	struct fmt a;

	str_puts(out, "Map of ");
	html_text(out, asked->space);
	str_printf(out, "%s%s%s after %s", named ? " at the " : "", named ? asked->at : "",
	    named ? "," : "", fmt_duration(&a, asked->time_ns));
}

/* The same page in another order: the map, then why. */
static void map_html(const struct map_view *v, const struct report_style *style, struct str *out)
{
	const struct page_map *asked = page_asked(v->report->page);

	begin("map", out);
	str_puts(out, "<main>\n<section id=\"asked\"><h1>");
	map_title(asked, out);
	str_puts(out, "</h1>\n<p class=\"about\">");
	html_text(out, v->report->result->verdict.summary);
	str_puts(out, "</p></section>\n<div id=\"views\" data-view=\"map\" data-space=\"");
	html_text(out, asked->space);
	str_printf(out,
	    "\" data-at=\"%llu\"></div>\n<noscript><p class=\"hint\">The picture needs "
	    "scripts; the tables say the same.</p></noscript>\n",
	    (unsigned long long)asked->time_ns);
	table(v->report->page, true, out);
	screen_html(v->report, style, out);
	str_puts(out, "</main>\n");
	end(v->report->page, out);
}

static void diff_html(const struct diff_view *v, const struct report_style *style, struct str *out)
{
	struct html_asset css = {page_diff_css, page_diff_css_bytes};
	struct html_asset script = {page_diff_js, page_diff_js_bytes};
	struct str data = {0};

	(void)style;
	html_open("what changed", &css, out);
	diff_screen_html(v, out);
	diff_data_html(v->result, &data);
	html_pictures(&script, "what changed", &data, out);
	str_puts(out, "</body>\n</html>\n");
	str_free(&data);
}

const struct format format_html = {
    .name = "html", .report = report_html, .map = map_html, .diff = diff_html, .pictures = true};
