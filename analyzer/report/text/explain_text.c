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
	str_printf(out, "%s%s%s", term_style(st->colour, style_tone(e->verdict.cause)),
	    cause_name(e->verdict.cause), term_style(st->colour, TERM_PLAIN));
	if (e->verdict.confidence > 0)
		str_printf(out, "   %s%.0f %% sure%s", term_style(st->colour, TERM_DIM),
		    e->verdict.confidence * 100, term_style(st->colour, TERM_PLAIN));
	str_putc(out, '\n');
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
	struct str title = {0};
	struct fmt a;

	if (!l->row_count)
		return;
	str_printf(&title, "Where the %s of %s went", fmt_size(&a, l->total), l->device);
	style_heading(out, st, "%s", str_text(&title));
	for (size_t i = 0; i < l->row_count; i++)
		ledger_row(st, out, l->rows[i].name, (int64_t)l->rows[i].bytes, l->total);
	ledger_row(st, out, "not in the message", l->unaccounted, l->total);
	ledger_row(st, out, "refused request", (int64_t)l->requested, l->total);
	str_free(&title);
}

static void numbers(
    const struct fields *fields, const struct report_style *st, struct str *out, unsigned indent)
{
	for (size_t i = 0; i < fields->list.count; i++) {
		const struct field *f = &fields->list.items[i];
		struct str line = {0};
		struct fmt fmt;

		if (f->type == FIELD_LIST) {
			for (size_t row = 0; row < f->rows->count && row < 8; row++) {
				str_clear(&line);
				str_printf(&line, "%s %zu:", f->name, row + 1);
				style_wrap(out, st, indent, "%s", str_text(&line));
				numbers(&f->rows->items[row], st, out, indent + 2);
			}
			str_free(&line);
			continue;
		}
		str_printf(&line, "%s: ", f->name);
		if (f->type == FIELD_BYTES)
			str_puts(&line, fmt_size_exact(&fmt, f->bytes));
		else if (f->type == FIELD_INTEGER)
			str_printf(&line, "%lld", (long long)f->integer);
		else if (f->type == FIELD_REAL)
			str_printf(&line, "%g", f->real);
		else
			str_puts(&line, f->text);
		style_wrap(out, st, indent, "%s", str_text(&line));
		str_free(&line);
	}
}

static void step(
    const struct explain_message *m, enum join of, const struct report_style *st, struct str *out)
{
	static const char *const marks[] = {[JOIN_NOTHING] = "",
	    [JOIN_FAILURE] = ": this failure",
	    [JOIN_RECOVERED] = ": the trace shows that the program recovered"};
	struct str head = {0}, text = {0};
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
	str_puts(&text, m->meaning);
	if (m->cause)
		str_printf(&text, " (%s)", cause_name(m->cause));
	style_wrap(out, st, 4, "%s", str_text(&text));
	if (st->verbose) {
		style_wrap(out, st, 6, "%s", m->text);
		numbers(&m->fields, st, out, 6);
	}
	str_free(&head);
	str_free(&text);
}

void story_text(const struct explanation *e, const enum join *of, const struct report_style *st,
    struct str *out)
{
	size_t shown = st->verbose || e->count <= STEPS ? e->count : STEPS;
	struct str more = {0};

	style_heading(out, st, "%s",
	    e->by_time ? "What the log says, by time" : "What the log says, by line");
	for (size_t i = 0; i < shown; i++)
		step(&e->messages[i], of ? of[i] : JOIN_NOTHING, st, out);
	if (shown < e->count) {
		str_printf(&more, "+ %zu more: --verbose", e->count - shown);
		style_wrap(out, st, 2, "%s", str_text(&more));
	}
	str_free(&more);
}

static void fixes(const struct explanation *e, const struct report_style *st, struct str *out)
{
	char head[32];

	if (e->verdict.next) {
		style_heading(out, st, "What would decide it");
		style_wrap(out, st, 2, "%s", e->verdict.next);
	}
	if (!e->verdict.fix_count)
		return;
	style_heading(out, st, "What to change");
	for (size_t i = 0; i < e->verdict.fix_count; i++) {
		struct str text = {0};

		snprintf(head, sizeof(head), "  %zu. ", i + 1);
		if (strcmp(e->verdict.fixes[i].for_, "any") != 0)
			str_printf(&text, "%s: ", e->verdict.fixes[i].for_);
		str_puts(&text, e->verdict.fixes[i].text);
		style_item(out, st, head, 5, "%s", str_text(&text));
		str_free(&text);
	}
}

void explain_text(const struct explanation *e, const struct report_style *style, struct str *out)
{
	headline(e, style, out);
	ledger(e, style, out);
	if (e->count > 1 || (e->count && style->verbose))
		story_text(e, NULL, style, out);
	fixes(e, style, out);
}
