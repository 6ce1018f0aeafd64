/* flow_text.c - see parts.h. */
#include "report/parts.h"

#include <string.h>

#include "util/text/fmt.h"

#define ROWS 8u /* of stages; further ones are small */

static void phases(const struct flow *f, struct str *text)
{
	struct fmt a, b, c;

	for (uint32_t i = 0; i < f->phases.count; i++) {
		const struct phase *p = &f->phases.list[i];

		if (i)
			str_puts(text, "; ");
		str_safe(text, p->name);
		if (i + 1 == f->phases.count)
			str_printf(text, " since %s", fmt_duration(&a, p->start_ns));
		else
			str_printf(text, " %s to %s, ended with %s", fmt_duration(&a, p->start_ns),
			    fmt_duration(&b, p->end_ns), fmt_size(&c, p->live_bytes));
	}
}

static void requests(const struct flow *f, struct str *text)
{
	const struct requests *r = f->requests;
	struct fmt a, b;

	if (!r->begun)
		return;
	str_printf(text, "%s%s request%s, up to %s at once", text->length ? "; " : "",
	    fmt_count(&a, r->begun), r->begun == 1 ? "" : "s", fmt_count(&b, r->most_at_once));
	if (r->in_flight)
		str_printf(text, ", %s in flight at the end", fmt_count(&a, r->in_flight));
}

static void stages(const struct flow *f, const struct report_style *st, struct str *out)
{
	struct fmt a;

	if (f->stage_count < 2)
		return;
	style_heading(out, st, "By stage");
	str_puts(out, "  ");
	style_cell(out, st, "", 16, false);
	style_cell(out, st, "held", 10, true);
	style_cell(out, st, "at most", 10, true);
	style_cell(out, st, "at", 12, true);
	style_end(out);
	for (size_t i = 0; i < f->stage_count && (i < ROWS || st->verbose); i++) {
		const struct stage *s = &f->stages[i];

		str_puts(out, "  ");
		style_cell(out, st, role_name(s->role), 16, false);
		style_cell(out, st, fmt_size(&a, s->held), 10, true);
		style_cell(out, st, fmt_size(&a, s->peak), 10, true);
		style_cell(out, st, fmt_duration(&a, s->peak_ns), 12, true);
		style_end(out);
	}
}

void flow_text(const struct verdict_result *r, const struct report_style *style, struct str *out)
{
	struct str text = {0};

	if (!r->flow.requests)
		return;
	if (r->flow.phases.count >= 2)
		phases(&r->flow, &text);
	requests(&r->flow, &text);
	if (text.length) {
		style_heading(out, style, "What the program was doing");
		str_putc(&text, '.');
		style_wrap(out, style, 2, "%s", str_text(&text));
	}
	str_free(&text);
	stages(&r->flow, style, out);
}
