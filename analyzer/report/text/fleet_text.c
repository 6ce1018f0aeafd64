/*
 * fleet_text.c - the answer to a question about a fleet, for a person: a table within the
 * terminal's width. The widest columns of words are cut first, numbers never.
 */
#include <string.h>

#include "report/format.h"
#include "report/text/style.h"
#include "util/num.h"

#define GAP 2u
#define COLUMNS_MAX 64u
#define LEAST 8u /* columns of a terminal that a column of words keeps */

struct table {
	const struct fleet_answer *answer;
	unsigned widths[COLUMNS_MAX];
	bool numbers[COLUMNS_MAX]; /* no word in it */
	size_t columns;
};

/* The name of a column: words, not a database's. */
static void put_name(struct str *out, const char *column)
{
	for (; *column; column++)
		str_putc(out, *column == '_' ? ' ' : *column);
}

static void measure(struct table *t)
{
	struct fmt f;

	for (size_t i = 0; i < t->columns; i++) {
		t->widths[i] = term_columns(t->answer->columns[i]);
		t->numbers[i] = true;
	}
	for (size_t row = 0; row < t->answer->row_count; row++)
		for (size_t i = 0; i < t->columns; i++) {
			const struct fleet_cell *c =
			    &t->answer->cells[row * t->answer->column_count + i];
			unsigned width = term_columns(fleet_shown(t->answer->columns[i], c, &f));

			t->numbers[i] &= c->number || !c->text;
			if (width > t->widths[i])
				t->widths[i] = width;
		}
}

static void narrow(struct table *t, unsigned room)
{
	unsigned sum = 0;

	for (size_t i = 0; i < t->columns; i++)
		sum += t->widths[i] + (i ? GAP : 0);
	while (sum > room) {
		size_t widest = t->columns;

		for (size_t i = 0; i < t->columns; i++)
			if (!t->numbers[i] && t->widths[i] > LEAST &&
			    (widest == t->columns || t->widths[i] > t->widths[widest]))
				widest = i;
		if (widest == t->columns)
			return;
		t->widths[widest]--;
		sum--;
	}
}

static void put_row(struct str *out, const struct report_style *style, const struct table *t,
    const struct fleet_cell *cells)
{
	struct fmt f;
	struct str text = {0};

	for (size_t i = 0; i < t->columns; i++) {
		str_clear(&text);
		if (cells)
			str_safe(&text, fleet_shown(t->answer->columns[i], &cells[i], &f));
		else
			put_name(&text, t->answer->columns[i]);
		style_blanks(out, i ? GAP : 0);
		style_cell(out, style, str_text(&text), t->widths[i], t->numbers[i]);
	}
	style_end(out);
	str_free(&text);
}

void fleet_text(const struct fleet_answer *a, const struct report_style *style, struct str *out)
{
	struct table t = {.answer = a, .columns = num_least(a->column_count, COLUMNS_MAX)};

	if (!a->row_count) {
		str_puts(out, "No run answers this.\n");
		return;
	}
	measure(&t);
	narrow(&t, style->columns);
	str_puts(out, term_style(style->colour, TERM_BOLD));
	put_row(out, style, &t, NULL);
	str_puts(out, term_style(style->colour, TERM_PLAIN));
	for (size_t row = 0; row < a->row_count; row++)
		put_row(out, style, &t, a->cells + row * a->column_count);
}
