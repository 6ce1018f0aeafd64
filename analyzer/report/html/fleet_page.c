/*
 * fleet_page.c - the answers about a fleet as one page, without scripts: what it costs first, then
 * crashes over time, then a table for each question.
 */
#include "report/html/html.h"
#include "util/num.h"
#include "util/vec.h"

#define ROWS 50u /* of a table; `whyoom fleet ask` has all */
#define COLOURS 12u /* --k0 to --k11 */
#define WIDTH 960u
#define HEIGHT 180u
#define COLUMN_MAX 96.0
#define LETTER 14 /* a letter's height, and its width with room beside it */

typedef VEC(const char *) words;

static char letter(unsigned nth)
{
	return (char)('A' + nth % 26);
}

static int index_of(words *list, const char *word)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], word))
			return (int)i;
	return vec_push(list, word) ? -1 : (int)list->count - 1;
}

/* One cause's part of a column; its letter where there is room, since colours alone do not tell. */
static void put_part(const char *period, const char *cause, uint64_t crashes, unsigned nth,
    double x, double y, double width, double high, struct str *out)
{
	str_printf(out,
	    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
	    "style=\"fill:var(--k%u)\"><title>",
	    x, y, width, high, nth % COLOURS);
	html_text(out, period);
	str_puts(out, ": ");
	html_text(out, cause);
	str_printf(out, ", %llu</title></rect>", (unsigned long long)crashes);
	if (high >= LETTER && width >= LETTER)
		str_printf(out, "<text x=\"%.1f\" y=\"%.1f\">%c</text>", x + width / 2,
		    y + high / 2 + 4, letter(nth));
}

static void put_column(const struct fleet_answer *a, words *causes, size_t first, size_t end,
    double x, double width, uint64_t most, struct str *out)
{
	double y = HEIGHT;

	for (size_t row = first; row < end; row++) {
		uint64_t crashes = fleet_number(a, row, "crashes");
		const char *cause = fleet_word(a, row, "cause");
		double high = (double)crashes * HEIGHT / (double)most;
		int nth = index_of(causes, cause ? cause : "");

		y -= high;
		put_part(fleet_word(a, row, "period"), cause, crashes, nth < 0 ? 0 : (unsigned)nth,
		    x, y, width * 0.85, high, out);
	}
}

/* The rows of a period follow each other. */
static size_t period_end(const struct fleet_answer *a, size_t row)
{
	const char *period = fleet_word(a, row, "period");
	size_t end = row;

	while (end < a->row_count && str_same(fleet_word(a, end, "period"), period))
		end++;
	return end;
}

static void put_legend(const words *causes, struct str *out)
{
	str_puts(out, "<p class=\"legend\">");
	for (size_t i = 0; i < causes->count; i++) {
		str_printf(out, "<span><span class=\"swatch k%u\">%c</span>",
		    (unsigned)(i % COLOURS), letter((unsigned)i));
		html_text(out, causes->items[i]);
		str_puts(out, "</span> ");
	}
	str_puts(out, "</p>\n");
}

static size_t count_periods(const struct fleet_answer *a, uint64_t *most)
{
	size_t periods = 0;

	*most = 1;
	for (size_t row = 0, end; row < a->row_count; row = end, periods++) {
		uint64_t sum = 0;

		end = period_end(a, row);
		for (size_t i = row; i < end; i++)
			sum += fleet_number(a, i, "crashes");
		*most = num_most(*most, sum);
	}
	return periods;
}

static void put_chart(const struct fleet_answer *a, struct str *out)
{
	uint64_t most;
	size_t periods = count_periods(a, &most), nth = 0;
	double width = (double)WIDTH / (double)periods;
	words causes = {0};

	width = width > COLUMN_MAX ? COLUMN_MAX : width;
	str_printf(out,
	    "<svg viewBox=\"0 0 %u %u\" role=\"img\" aria-label=\"Crashes over time; the "
	    "table below has the numbers\">",
	    WIDTH, HEIGHT);
	for (size_t row = 0, end; row < a->row_count; row = end, nth++) {
		end = period_end(a, row);
		put_column(a, &causes, row, end, (double)nth * width, width, most, out);
	}
	str_printf(out, "</svg>\n<p class=\"scale\" style=\"max-width:%.0f%%\"><span>",
	    (double)periods * width * 100 / WIDTH);
	html_text(out, fleet_word(a, 0, "period"));
	if (periods > 1) {
		str_puts(out, "</span><span>");
		html_text(out, fleet_word(a, a->row_count - 1, "period"));
	}
	str_printf(out, "</span></p>\n<p class=\"hint\">The highest column has %llu.</p>\n",
	    (unsigned long long)most);
	put_legend(&causes, out);
	vec_free(&causes);
}

static void put_name(const char *column, struct str *out)
{
	struct str words_of = {0};

	for (; *column; column++)
		str_putc(&words_of, *column == '_' ? ' ' : *column);
	html_text(out, str_text(&words_of));
	str_free(&words_of);
}

static void put_row(const struct fleet_section *s, size_t row, struct str *out)
{
	const struct fleet_answer *a = &s->answer;
	const char *link = s->links ? s->links[row] : NULL;
	struct fmt f;

	str_puts(out, "<tr>");
	for (size_t i = 0; i < a->column_count; i++) {
		const struct fleet_cell *c = &a->cells[row * a->column_count + i];

		str_puts(out, c->number ? "<td>" : "<td class=\"word\">");
		if (link && !strcmp(a->columns[i], "example")) {
			str_puts(out, "<a href=\"");
			html_text(out, link);
			str_puts(out, "\">its report</a> ");
		}
		html_text(out, fleet_shown(a->columns[i], c, &f));
		str_puts(out, "</td>");
	}
	str_puts(out, "</tr>\n");
}

static void put_table(const struct fleet_section *s, struct str *out)
{
	const struct fleet_answer *a = &s->answer;

	str_puts(out, "<div class=\"scroll\"><table><thead><tr>");
	for (size_t i = 0; i < a->column_count; i++) {
		bool number = a->row_count && a->cells[i].number;

		str_puts(out, number ? "<th scope=\"col\">" : "<th scope=\"col\" class=\"word\">");
		put_name(a->columns[i], out);
		str_puts(out, "</th>");
	}
	str_puts(out, "</tr></thead><tbody>\n");
	for (size_t row = 0; row < a->row_count && row < ROWS; row++)
		put_row(s, row, out);
	str_puts(out, "</tbody></table></div>\n");
	if (a->row_count > ROWS) {
		str_printf(out, "<p class=\"hint\">%zu more: <code>whyoom fleet ask ",
		    a->row_count - ROWS);
		html_text(out, s->name);
		str_puts(out, "</code></p>\n");
	}
}

static void put_section(const struct fleet_section *s, struct str *out)
{
	struct str title = {0};

	str_add(&title, s->title, strcspn(s->title, "\n"));
	str_puts(out, "<section><h2>");
	html_text(out, str_text(&title));
	str_puts(out, "</h2>\n");
	if (!s->answer.row_count)
		str_puts(out, "<p class=\"hint\">No run answers this.</p>\n");
	else if (s->chart) {
		put_chart(&s->answer, out);
		str_puts(out, "<details><summary>As a table</summary>\n");
		put_table(s, out);
		str_puts(out, "</details>\n");
	} else {
		put_table(s, out);
	}
	str_puts(out, "</section>\n");
	str_free(&title);
}

static void put_summary(const struct fleet_page *p, struct str *out)
{
	const struct fleet_answer *a = &p->summary;
	uint64_t runs = fleet_number(a, 0, "runs"), crashes = fleet_number(a, 0, "crashes"),
		 pods = fleet_number(a, 0, "pods"), bad = fleet_number(a, 0, "unreadable");
	bool one_day = str_same(fleet_word(a, 0, "first_day"), fleet_word(a, 0, "last_day"));
	struct fmt f, g;

	str_printf(out, "<section id=\"verdict\" class=\"%s\"><h1>%s of %s runs ran out of memory",
	    crashes ? "bad" : "good", crashes ? fmt_count(&f, crashes) : "None",
	    fmt_count(&g, runs));
	if (pods)
		str_printf(out, ", in %s pods", fmt_count(&f, pods));
	str_printf(out, "</h1>\n<p class=\"about\">Begun %s", one_day ? "on " : "");
	html_text(out, fleet_word(a, 0, "first_day"));
	if (!one_day) {
		str_puts(out, " to ");
		html_text(out, fleet_word(a, 0, "last_day"));
	}
	if (bad)
		str_printf(out, ". %s more could not be judged", fmt_count(&f, bad));
	str_puts(out, ".</p></section>\n");
}

void fleet_page_html(const struct fleet_page *p, struct str *out)
{
	struct html_asset css = {page_fleet_css, page_fleet_css_bytes};

	html_open("fleet", &css, out);
	str_puts(out, "<header><b class=\"brand\">whyoom fleet</b></header>\n<main>\n");
	put_summary(p, out);
	for (size_t i = 0; i < p->count; i++)
		put_section(&p->sections[i], out);
	str_puts(out, "</main>\n</body>\n</html>\n");
}
