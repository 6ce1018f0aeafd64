/*
 * explain_text.c - an explanation for a person: the verdict, where the device's memory was, what
 * the log says in order, what to change.
 */
#include <stdio.h>
#include <string.h>

#include "report/format.h"
#include "report/parts.h"
#include "report/text/style.h"
#include "util/text/fmt.h"

#define STEPS 12u /* of the story, without verbose */

static void headline(const struct explanation *e, const struct report_style *st, struct str *out)
{
	style_verdict(out, st, e->verdict.cause, e->verdict.confidence);
	style_wrap(out, st, 2, "%s", e->verdict.summary);
}

static void ledger_row(
    const struct report_style *st, struct str *out, const char *name, int64_t bytes, uint64_t total)
{
	bool narrow = st->columns < 60;
	unsigned names = narrow ? st->columns - 12 : 30;
	struct fmt a, b;

	str_puts(out, "  ");
	style_cell(out, st, name, names, false);
	style_cell(out, st, fmt_size_signed(&a, bytes) + (bytes > 0), 10, true);
	if (bytes >= 0 && !narrow)
		style_cell(out, st, fmt_percent(&b, (uint64_t)bytes, total), 8, true);
	if (st->columns >= 72 && bytes > 0) {
		str_puts(out, "  ");
		style_bar(out, st, (double)bytes / (double)total, st->columns - names - 24);
	}
	style_end(out);
}

static void ledger(const struct explanation *e, const struct report_style *st, struct str *out)
{
	const struct explain_ledger *l = &e->ledger;
	struct fmt a;

	if (!l->row_count)
		return;
	style_heading(out, st, "Where the %s of %s went", fmt_size(&a, l->total), l->device);
	for (size_t i = 0; i < l->row_count; i++)
		ledger_row(st, out, l->rows[i].name, (int64_t)l->rows[i].bytes, l->total);
	ledger_row(st, out, "not in the message", l->unaccounted, l->total);
	ledger_row(st, out, "refused request", (int64_t)l->requested, l->total);
}

static void numbers(
    const struct fields *fields, const struct report_style *st, struct str *out, unsigned indent)
{
	for (size_t i = 0; i < fields->list.count; i++) {
		const struct field *f = &fields->list.items[i];
		struct fmt fmt;

		switch (f->type) {
		case FIELD_LIST:
			for (size_t row = 0; row < f->rows->count && row < 8; row++) {
				style_wrap(out, st, indent, "%s %zu:", f->name, row + 1);
				numbers(&f->rows->items[row], st, out, indent + 2);
			}
			break;
		case FIELD_BYTES:
			style_wrap(
			    out, st, indent, "%s: %s", f->name, fmt_size_exact(&fmt, f->bytes));
			break;
		case FIELD_INTEGER:
			style_wrap(out, st, indent, "%s: %lld", f->name, (long long)f->integer);
			break;
		case FIELD_REAL:
			style_wrap(out, st, indent, "%s: %g", f->name, f->real);
			break;
		case FIELD_TEXT:
			style_wrap(out, st, indent, "%s: %s", f->name, f->text);
			break;
		}
	}
}

static void step(
    const struct explain_message *m, enum join of, const struct report_style *st, struct str *out)
{
	static const char *const marks[] = {[JOIN_NOTHING] = "",
	    [JOIN_FAILURE] = ": this failure",
	    [JOIN_RECOVERED] = ": the trace shows that the program recovered"};
	struct str head = {0};
	struct fmt a;

	if (m->time)
		str_printf(&head, "%s, ", m->time);
	str_printf(&head, "line %s", fmt_count(&a, m->line));
	str_printf(&head, ", %s, %s", m->known->from, message_kind_name(m->kind));
	if (m->count > 1)
		str_printf(&head, ", %s times until line %llu", fmt_count(&a, m->count),
		    (unsigned long long)m->last_line);
	str_puts(&head, marks[of]);
	str_puts(out, term_style(st->colour, TERM_DIM));
	style_wrap(out, st, 2, "%s", str_text(&head));
	str_puts(out, term_style(st->colour, TERM_PLAIN));
	if (m->cause)
		style_wrap(out, st, 4, "%s (%s)", m->meaning, cause_name(m->cause));
	else
		style_wrap(out, st, 4, "%s", m->meaning);
	if (st->verbose) {
		style_wrap(out, st, 6, "%s", m->text);
		numbers(&m->fields, st, out, 6);
	}
	str_free(&head);
}

void story_text(const struct explanation *e, const enum join *of, const struct report_style *st,
    struct str *out)
{
	size_t shown = st->verbose || e->count <= STEPS ? e->count : STEPS;

	style_heading(out, st, "%s",
	    e->by_time ? "What the log says, by time" : "What the log says, by line");
	for (size_t i = 0; i < shown; i++)
		step(&e->messages[i], of ? of[i] : JOIN_NOTHING, st, out);
	if (shown < e->count)
		style_wrap(out, st, 2, "+ %zu more: --verbose", e->count - shown);
}

static void fixes(const struct explanation *e, const struct report_style *st, struct str *out)
{
	if (e->verdict.next) {
		style_heading(out, st, "What would decide it");
		style_wrap(out, st, 2, "%s", e->verdict.next);
	}
	if (!e->verdict.fix_count)
		return;
	style_heading(out, st, "What to change");
	for (size_t i = 0; i < e->verdict.fix_count; i++)
		style_fix(out, st, i + 1, e->verdict.fixes[i].for_, e->verdict.fixes[i].text);
}

void explain_text(const struct explanation *e, const struct report_style *style, struct str *out)
{
	headline(e, style, out);
	ledger(e, style, out);
	if (e->count > 1 || (e->count && style->verbose))
		story_text(e, NULL, style, out);
	fixes(e, style, out);
}
