#include "watch/view/draw.h"

#include <curses.h>
#include <string.h>
#include <wchar.h>

#include "util/num.h"
#include "util/text/fmt.h"
#include "watch/screen.h"
#include "watch/view/terminal.h"

#define LINE_MAX_CHARACTERS 512
#define HEADLINE_ROWS 3
#define SMALL_SPARK (LIST_SPARK / 2)

/* Shares of a limit that are worth a look, and that are urgent. The number stands beside. */
#define USED_HIGH 0.75
#define USED_URGENT 0.9
#define SECONDS_URGENT 3600.0

static attr_t colour(short pair)
{
	return COLOR_PAIRS > pair ? (attr_t)COLOR_PAIR(pair) : 0;
}

/* Take as many characters as fit into `columns`. Returns their number; *bytes: of the text. */
static int decode(const char *text, int columns, wchar_t out[LINE_MAX_CHARACTERS], size_t *bytes)
{
	int used = 0, count = 0;

	*bytes = 0;
	while (text[*bytes] && count < LINE_MAX_CHARACTERS) {
		size_t n = str_utf8(text + *bytes);
		wchar_t c = n ? (wchar_t)str_code(text + *bytes, n) : L'?';
		int width = wcwidth(c);

		if (width < 0 || !n) { /* not in the person's encoding, or nothing to see */
			c = L'?';
			width = 1;
		}
		if (used + width > columns)
			break;
		used += width;
		out[count++] = c;
		*bytes += n ? n : 1;
	}
	return count;
}

static int columns_of(const wchar_t *text, int count)
{
	int columns = 0;

	for (int i = 0; i < count; i++)
		columns += wcwidth(text[i]);
	return columns;
}

/* Print from `column` to before `end`, and mark what did not fit. Returns the next column. */
static int put(int row, int column, int end, attr_t attributes, const char *text)
{
	wchar_t line[LINE_MAX_CHARACTERS];
	size_t bytes;
	int count;

	if (column >= end || row < 0 || row >= LINES)
		return column;
	count = decode(text, end - column, line, &bytes);
	if (text[bytes] && count) {
		count = decode(text, end - column - 1, line, &bytes);
		if (count < LINE_MAX_CHARACTERS)
			line[count++] = terminal_is_utf8() ? L'…' : L'>';
	}
	attrset(attributes);
	mvaddnwstr(row, column, line, count);
	attrset(A_NORMAL);
	return column + columns_of(line, count);
}

static int put_str(int row, int column, int end, attr_t attributes, struct str *text)
{
	column = put(row, column, end, attributes, str_text(text));
	str_free(text);
	return column;
}

/* Print over several rows, broken at blanks. Returns the row below. */
static int put_wrapped(int row, int rows, attr_t attributes, const char *text)
{
	for (int last = row + rows - 1; *text && row <= last; row++) {
		wchar_t line[LINE_MAX_CHARACTERS];
		struct str part = {0};
		size_t bytes, cut;

		decode(text, COLS, line, &bytes);
		if (!text[bytes] || row == last) {
			put(row, 0, COLS, attributes, text);
			return row + 1;
		}
		for (cut = bytes; cut && text[cut] != ' '; cut--)
			;
		cut = cut ? cut : bytes;
		str_add(&part, text, cut);
		put_str(row, 0, COLS, attributes, &part);
		text += cut + (text[cut] == ' ');
	}
	return row;
}

static int put_spark(int row, int column, int columns, const uint8_t levels[LIST_SPARK])
{
	static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const ascii[] = {" ", "_", ".", ",", "-", "=", "+", "*", "#"};
	unsigned step = LIST_SPARK / (unsigned)columns;

	for (int i = 0; i < columns; i++) {
		/* With few looks a half may be empty: the newer one counts. */
		uint8_t level = levels[(unsigned)i * step + step - 1];

		put(row, column + i, column + i + 1, colour(COLOR_CYAN),
		    terminal_is_utf8() ? bars[level] : ascii[level]);
	}
	return column + columns;
}

static int put_bar(int row, int column, int columns, attr_t attributes, double share)
{
	int full = (int)(share * columns + 0.5);

	for (int i = 0; i < columns; i++)
		if (terminal_is_utf8())
			put(row, column + i, column + i + 1, attributes, i < full ? "█" : "░");
		else
			put(row, column + i, column + i + 1, attributes, i < full ? "#" : ".");
	return column + columns;
}

static double share_of(const struct watched_space *s)
{
	return s->limit && s->limit_bytes
		   ? 1 - (double)num_least(s->left, s->limit_bytes) / (double)s->limit_bytes
		   : 0;
}

static attr_t urgency(double share, const struct forecast *f)
{
	bool grows = f && f->state == FORECAST_GROWS;

	if (share >= USED_URGENT || (grows && f->seconds < SECONDS_URGENT))
		return colour(COLOR_RED) | A_BOLD;
	return share >= USED_HIGH || grows ? colour(COLOR_YELLOW) : 0;
}

static void put_heading(int row, const char *text)
{
	put(row, 0, COLS, colour(COLOR_CYAN) | A_BOLD, text);
}

/* The space of a process that will be full first; NULL: none grows. */
static const struct watched_space *first_full(const struct watched *w)
{
	const struct watched_space *first = NULL;

	for (size_t i = 0; i < w->space_count; i++)
		if (w->spaces[i].forecast.state == FORECAST_GROWS &&
		    (!first || w->spaces[i].forecast.seconds < first->forecast.seconds))
			first = &w->spaces[i];
	return first;
}

static void put_process(const struct draw_state *s, size_t at, int row)
{
	const struct list_process *p = &s->list.processes[at];
	const struct watched *w = &p->facts;
	const struct watched_space *first = first_full(w);
	bool selected = at == s->list.process;
	attr_t attributes = selected && s->focus == DRAW_PROCESSES ? A_REVERSE : 0;
	struct str line = {0}, when = {0};
	double share = 0;
	struct fmt f;

	for (size_t i = 0; i < w->space_count; i++)
		if (share_of(&w->spaces[i]) > share)
			share = share_of(&w->spaces[i]);
	if (!w->running)
		str_puts(&when, "has ended");
	else if (first)
		str_printf(&when, "full in %s", fmt_duration(&f, num_ns(first->forecast.seconds)));
	str_printf(&line, "%c%2zu %7u %4.0f %%", selected ? '>' : ' ', at + 1, w->pid, share * 100);
	if (COLS >= 60)
		str_printf(
		    &line, " %9s", fmt_size(&f, w->space_count ? w->spaces[0].live_bytes : 0));
	if (COLS >= 80)
		str_printf(&line, "  %-20s", str_text(&when));
	str_printf(&line, "  %s", p->command);
	put_str(row, 0, COLS, attributes | urgency(share, first ? &first->forecast : NULL), &line);
	str_free(&when);
}

/* Where a list of `count` starts so that `selected` can be seen in `rows`. */
static size_t window(size_t count, size_t selected, size_t rows)
{
	size_t first = num_less(selected, rows / 2);

	return num_least(first, num_less(count, rows));
}

static int put_processes(const struct draw_state *s, int row, int rows)
{
	size_t count = s->list.process_count, shown = (size_t)rows - 1;
	size_t first = window(count, s->list.process, shown);
	struct str text = {0};

	str_printf(&text, " #     pid   used%s%s  process (%zu)", COLS >= 60 ? "      live" : "",
	    COLS >= 80 ? "                      " : "", count);
	put_heading(row++, str_text(&text));
	str_free(&text);
	for (size_t i = first; i < count && i < first + shown; i++)
		put_process(s, i, row++);
	return row;
}

static int put_details(const struct list_process *p, int row)
{
	const struct watched *w = &p->facts;
	struct str text = {0};
	struct fmt f;

	str_printf(&text, "pid %u", w->pid);
	str_printf(&text, " %s %s", w->running ? "runs for" : "has ended after",
	    fmt_duration(&f, w->age_ns));
	if (w->resident_bytes)
		str_printf(&text, ", %s resident", fmt_size(&f, w->resident_bytes));
	if (w->before_bytes)
		str_printf(&text, ", %s since before the attach", fmt_size(&f, w->before_bytes));
	if (w->refused)
		str_printf(&text, ", %s refused", fmt_count(&f, w->refused));
	if (w->sampled)
		str_puts(&text, ", estimated");
	str_printf(&text, ": %s", p->command);
	put_heading(row, str_text(&text));
	str_free(&text);
	return row + 1;
}

#define WIDE 160 /* columns: a space takes one row */
#define NARROW 60

static void add_space_state(const struct watched_space *s, struct str *out)
{
	struct fmt f;

	if (COLS < NARROW && s->forecast.state == FORECAST_GROWS)
		str_printf(out, "full in %s", fmt_duration(&f, num_ns(s->forecast.seconds)));
	else
		screen_when(s, out);
	if (s->forecast.state != FORECAST_UNKNOWN)
		str_puts(out, ", ");
	str_printf(out, "%s live", fmt_size(&f, s->live_bytes));
	if (s->reserved_bytes)
		str_printf(out, ", %s reserved", fmt_size(&f, s->reserved_bytes));
}

/* Two rows, or one where the terminal is wide. */
static int put_space(const struct list_process *p, size_t at, int row)
{
	const struct watched_space *s = &p->facts.spaces[at];
	attr_t attributes = urgency(share_of(s), &s->forecast);
	bool narrow = COLS < NARROW;
	struct str text = {0};
	struct fmt f, g;
	int column;

	str_printf(&text, narrow ? " %-6s " : "  %-7s ", s->name);
	column = put_str(row, 0, COLS, 0, &text);
	if (s->limit) {
		column = put_bar(row, column, narrow ? 8 : LIST_SPARK, attributes, share_of(s));
		str_printf(&text, " %3.0f %%  %s left", share_of(s) * 100, fmt_size(&f, s->left));
		if (!narrow)
			str_printf(&text, " of %s (%s)", fmt_size(&g, s->limit_bytes), s->limit);
	} else {
		str_puts(&text, "its limit is not known");
	}
	column = put_str(row, column, COLS, attributes, &text) + 2;
	if (COLS < WIDE) {
		column = narrow ? 1 : 10;
		row++;
	}
	column = put_spark(row, column, narrow ? SMALL_SPARK : LIST_SPARK, p->sparks[at]) + 1;
	add_space_state(s, &text);
	put_str(row, column, COLS, attributes, &text);
	return row + 1;
}

/* Pressure is worth a look when tasks stand still for a tenth of the time. */
#define STALLED_HIGH 0.1

/* A row each, or two where it is narrow: requests and early signs; the likely cause. Left out where
 * nothing is known. */
static int put_signs(const struct watched *w, int row)
{
	struct str text = {0};

	str_puts(&text, "  ");
	screen_state(w, &text);
	if (text.length > 2)
		row = put_wrapped(row, 2,
		    w->pressure.some >= STALLED_HIGH ? colour(COLOR_YELLOW) : 0, str_text(&text));
	str_clear(&text);
	str_puts(&text, "  ");
	screen_cause(w, &text);
	if (text.length > 2)
		row = put_wrapped(row, 2, A_BOLD, str_text(&text));
	str_free(&text);
	return row;
}

static int put_kinds(const struct watched *w, int row)
{
	const struct watched_kinds *k = &w->kinds;
	const struct {
		const char *name;
		uint64_t bytes;
	} kinds[] = {{"  live: blocks", k->blocks}, {", mappings", k->mappings},
	    {", shared", k->shared}, {", files", k->files}, {"; imports", k->imports},
	    {"; what grows", k->growing}};
	struct str text = {0};
	struct fmt f;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].bytes || i == 0)
			str_printf(&text, "%s %s", kinds[i].name, fmt_size(&f, kinds[i].bytes));
	put_str(row, 0, COLS, 0, &text);
	return row + 1;
}

/* Columns of the call sites' table; 0: left out on this width. */
struct table {
	int live, count, rate, change, spark;
};

static struct table table_for(int columns)
{
	struct table t = {9, 0, 11, 0, 0};

	if (columns >= 56)
		t.spark = SMALL_SPARK;
	if (columns >= 76)
		t.spark = LIST_SPARK;
	if (columns >= 92)
		t.count = 11;
	if (columns >= 110)
		t.change = 10;
	return t;
}

static void put_site(const struct draw_state *s, size_t at, int row)
{
	const struct list_site *site = &list_process(&s->list)->sites[s->list.shown.items[at]];
	struct table t = table_for(COLS);
	bool selected = at == s->list.site;
	attr_t attributes = (selected && s->focus == DRAW_SITES ? A_REVERSE : 0) |
			    (site->rate > 0 ? colour(COLOR_YELLOW) : 0);
	struct str text = {0}, rate = {0};
	int column;
	struct fmt f;

	if (site->rate > 0)
		screen_rate(site->rate, &rate);
	str_printf(&text, "%c%*s", selected ? '>' : ' ', t.live, fmt_size(&f, site->live_bytes));
	if (t.count)
		str_printf(&text, "%*s", t.count, fmt_count(&f, site->live_count));
	str_printf(&text, "%*s", t.rate, str_text(&rate));
	if (t.change)
		str_printf(&text, "%*s", t.change, fmt_size_signed(&f, site->change));
	str_puts(&text, "  ");
	column = put_str(row, 0, COLS, attributes, &text);
	if (t.spark)
		column = put_spark(row, column, t.spark, site->spark) + 2;
	str_printf(&text, "%s  %s", site->name, site->line_name);
	put_str(row, column, COLS, attributes, &text);
	str_free(&rate);
}

/* Say which time the small pictures show. */
static void add_span(double seconds, struct str *out)
{
	unsigned whole = (unsigned)(seconds + 0.5);
	struct fmt f;

	if (whole >= 60)
		str_printf(out, "last %s", fmt_duration(&f, num_ns(whole)));
	else
		str_printf(out, "last %u s", whole);
}

static void put_site_heading(const struct draw_state *s, int row)
{
	const struct list *l = &s->list;
	struct table t = table_for(COLS);
	struct str text = {0}, span = {0};

	add_span(l->seconds, &span);
	str_printf(&text, " %*s", t.live, "live");
	if (t.count)
		str_printf(&text, "%*s", t.count, "blocks");
	str_printf(&text, "%*s", t.rate, "grows by");
	if (t.change)
		str_printf(&text, "%*s", t.change, "change");
	str_puts(&text, "  ");
	if (t.spark)
		str_printf(&text, "%-*s  ", t.spark, t.spark == LIST_SPARK ? str_text(&span) : "");
	str_printf(&text, "call site (%zu of %zu by %s", l->shown.count,
	    list_process(l)->facts.callsite_total, list_sort_name(l->sort));
	if (*l->filter && !s->filtering) {
		str_puts(&text, ", with \"");
		str_safe(&text, l->filter);
		str_puts(&text, "\"");
	}
	str_puts(&text, ")");
	put_heading(row, str_text(&text));
	str_free(&text);
	str_free(&span);
}

static void put_sites(struct draw_state *s, int row, int end)
{
	size_t count = s->list.shown.count, rows, first;

	if (row + 1 >= end)
		return;
	put_site_heading(s, row++);
	rows = (size_t)(end - row);
	s->page = rows;
	first = window(count, s->list.site, rows);
	for (size_t i = first; i < count && i < first + rows; i++)
		put_site(s, i, row++);
	if (!count)
		put(row, 2, COLS, 0,
		    *s->list.filter ? "no call site has this text" : "nothing lives yet");
}

static void put_lists(struct draw_state *s, int row, int end)
{
	const struct list_process *p = list_process(&s->list);
	bool airy = LINES >= 24;
	int room = end - row;
	size_t fit;

	if (!p) {
		struct str text = {0};

		str_puts(&text, "waiting for a recorded process: ");
		str_safe(&text, s->source);
		put_str(row, 0, COLS, 0, &text);
		return;
	}
	row += airy;
	if (s->list.process_count > 1 && room >= 9) {
		fit = num_least(s->list.process_count, num_most(2, (uint64_t)room / 4));
		row = put_processes(s, row, (int)fit + 1) + airy;
	}
	if (room >= 7)
		row = put_details(p, row);
	if (room >= 10)
		row = put_signs(&p->facts, row);
	/* A third of the room, for one space at least. */
	fit = (size_t)(COLS >= WIDE ? room / 3 : room / 6);
	fit = room >= 5 ? num_most(fit, 1) : 0;
	for (size_t i = 0; i < p->facts.space_count && i < fit; i++)
		row = put_space(p, i, row);
	if (room >= 12)
		row = put_kinds(&p->facts, row);
	put_sites(s, row + airy, end);
}

static void put_lines(struct draw_state *s, const char *title, const char *const *lines,
    size_t count, int row, int end)
{
	put_heading(row++, title);
	s->page = (size_t)(end > row ? end - row : 0);
	s->scroll = num_least(s->scroll, num_less(count, s->page));
	for (size_t i = s->scroll; i < count && row < end; i++)
		put(row++, 0, COLS, 0, lines[i]);
}

static void put_help(struct draw_state *s, int row, int end)
{
	static const char *const lines[] = {"  q          quit",
	    "  up, down   select (also j, k, page up, page down, home, end)",
	    "  tab        go to the other list: processes, call sites",
	    "  1 to 9     select a process; p the next one",
	    "  s          sort call sites: growth, live, count, name",
	    "  /          show only call sites with a text; Esc shows all",
	    "  enter      show the stack of the selected call site; Esc goes back",
	    "  space      freeze what is shown; looks go on", "  h          show and hide this", "",
	    "  used: how much of the limit is used that is reached first.",
	    "  grows by: what is kept in the last quarter of the run, if it keeps on growing.",
	    "  The small picture is what lives at each look, from its least to its most.",
	    "  A time in parentheses is the range in which the limit is likely reached."};

	put_lines(s, "Keys", lines, sizeof(lines) / sizeof(*lines), row, end);
}

static void put_bottom(const struct draw_state *s, int row)
{
	struct str text = {0};
	int column = 0;

	if (s->frozen)
		column = put(row, 0, COLS, A_REVERSE | A_BOLD, " frozen ") + 1;
	if (s->filtering) {
		str_puts(&text, "show call sites with: ");
		str_safe(&text, s->list.filter);
		str_puts(&text, "_");
	} else if (s->panel != DRAW_LISTS) {
		str_puts(&text, "Esc back  up, down scroll  q quit");
	} else {
		str_printf(&text,
		    "q quit  h help  s sort  / filter  space %s  enter stack  p process  tab list",
		    s->frozen ? "go on" : "freeze");
	}
	put_str(row, column, COLS, s->filtering ? A_BOLD : A_DIM, &text);
}

void draw(struct draw_state *s)
{
	int end = LINES - 1, row = 0;
	const char *headline = s->list.process_count ? s->list.headline : NULL;

	erase();
	if (headline)
		row = put_wrapped(
		    0, num_least(HEADLINE_ROWS, (uint64_t)LINES / 6 + 1), A_BOLD, headline);
	for (const char *p = s->lines; p && *p && end > row + 6; p += strcspn(p, "\n") + 1) {
		struct str line = {0};

		str_add(&line, p, strcspn(p, "\n"));
		put_str(row++, 0, COLS, 0, &line);
	}
	if (s->note && end > row + 4) {
		put(--end, 0, COLS, colour(COLOR_YELLOW), s->note);
	}
	if (s->panel == DRAW_HELP)
		put_help(s, row, end);
	else if (s->panel == DRAW_STACK)
		put_lines(s, s->stack_title, (const char *const *)s->stack.items, s->stack.count,
		    row, end);
	else
		put_lists(s, row, end);
	put_bottom(s, LINES - 1);
	refresh();
}
