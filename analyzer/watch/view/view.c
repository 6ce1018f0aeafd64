#include "watch/view/view.h"

#include <curses.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "util/clock_ns.h"
#include "util/num.h"
#include "util/text/fmt.h"
#include "util/text/note.h"
#include "watch/view/draw.h"
#include "watch/view/terminal.h"

#define KEY_ESCAPE 27
#define KEY_ERASE_LINE ('U' & 31)
#define KEY_REDRAW ('L' & 31)
#define KEY_RUBOUT 127
#define STACK_LINES 400u /* deeper stacks lose their outermost frames */

struct view {
	struct draw_state state;
	struct watch *const *watches;
	const struct watched *const *processes; /* of the latest look, also while frozen */
	size_t count;
	bool shown; /* a look was shown */
};

static void take_note(void *arg, const char *text)
{
	struct view *v = arg;
	struct str safe = {0};

	str_safe(&safe, text);
	if (safe.failed) {
		str_free(&safe);
		return;
	}
	free(v->state.note);
	v->state.note = safe.text;
}

int view_open(const char *source, struct view **out)
{
	struct view *v = calloc(1, sizeof(*v));
	int r;

	*out = NULL;
	if (!v || list_init(&v->state.list)) {
		free(v);
		return -ENOMEM;
	}
	v->state.source = source;
	v->state.focus = DRAW_SITES;
	r = terminal_open();
	if (r) {
		list_fini(&v->state.list);
		free(v);
		return r;
	}
	note_redirect(take_note, v);
	*out = v;
	return 0;
}

static void drop_stack(struct draw_state *s)
{
	for (size_t i = 0; i < s->stack.count; i++)
		free(s->stack.items[i]);
	s->stack.count = 0;
	free(s->stack_title);
	s->stack_title = NULL;
}

void view_close(struct view *v)
{
	if (!v)
		return;
	terminal_close();
	note_redirect(NULL, NULL);
	drop_stack(&v->state);
	vec_free(&v->state.stack);
	free(v->state.note);
	free(v->state.lines);
	list_fini(&v->state.list);
	free(v);
}

void view_set_lines(struct view *v, const char *lines)
{
	free(v->state.lines);
	v->state.lines = strdup(lines);
}

int view_show(struct view *v, struct watch *const *watches, const struct watched *const *processes,
    size_t count)
{
	bool show = !v->state.frozen || !v->shown;
	int r;

	v->watches = watches;
	v->processes = processes;
	v->count = count;
	r = list_take(
	    &v->state.list, processes, count, (double)clock_ns(CLOCK_MONOTONIC) / 1e9, show);
	/* Where there are several, the first choice is which. */
	if (!v->shown && count > 1)
		v->state.focus = DRAW_PROCESSES;
	v->shown = v->shown || count;
	if (!r)
		draw(&v->state);
	return r;
}

/* Return the call site as the latest look has it, and its process; NULL: it is gone. */
static const struct watched_site *find_now(
    const struct view *v, uint32_t pid, const struct list_site *s, struct watch **watch)
{
	for (size_t i = 0; i < v->count; i++) {
		const struct watched *w = v->processes[i];

		for (size_t k = 0; w->pid == pid && k < w->seen; k++) {
			*watch = v->watches[i];
			if (w->sites[k].line == s->line &&
			    str_same(w->sites[k].function, s->function) &&
			    str_same(w->sites[k].file, s->file))
				return &w->sites[k];
		}
	}
	return NULL;
}

/* `site`: marks its frame. */
static int add_stack_line(
    struct draw_state *s, const struct symbol *symbol, const struct list_site *site)
{
	bool blamed = symbol && symbol->line == site->line &&
		      str_same(symbol->function, site->function) &&
		      str_same(symbol->file, site->file);
	struct str plain = {0}, line = {0};

	if (symbol) {
		fmt_function(&plain, symbol->function ? symbol->function : "?", "…");
		if (symbol->file)
			str_printf(&plain, "  %s:%u", symbol->file, symbol->line);
		else if (symbol->module)
			str_printf(&plain, "  %s", symbol->module);
	} else {
		str_puts(&plain, "(its stack is not known any more)");
	}
	str_puts(&line, blamed ? "> " : "  ");
	str_safe(&line, str_text(&plain));
	if (plain.failed || line.failed || vec_push(&s->stack, line.text)) {
		str_free(&plain);
		str_free(&line);
		return -ENOMEM;
	}
	str_free(&plain);
	return 0;
}

static int open_stack(struct view *v)
{
	struct draw_state *s = &v->state;
	const struct list_site *site = list_site(&s->list);
	const struct watched_site *now;
	const struct symbol *symbols = NULL;
	struct watch *watch;
	struct str title = {0};
	size_t count = 0;
	int r = 0;

	if (!site)
		return 0;
	drop_stack(s);
	now = find_now(v, s->list.pid, site, &watch);
	if (now)
		count = watch_stack(watch, now->stack, &symbols);
	str_printf(&title, "Stack of %s%s%s, innermost first", site->name,
	    *site->line_name ? " " : "", site->line_name);
	if (title.failed) {
		str_free(&title);
		return -ENOMEM;
	}
	s->stack_title = title.text;
	for (size_t i = 0; i < count && i < STACK_LINES && !r; i++)
		r = add_stack_line(s, &symbols[count - 1 - i], site);
	if (!count)
		r = add_stack_line(s, NULL, site);
	s->scroll = 0;
	s->panel = DRAW_STACK;
	return r;
}

static void scroll_by(struct draw_state *s, long by)
{
	s->scroll = by < 0 ? num_less(s->scroll, (uint64_t)-by) : s->scroll + (size_t)by;
}

static int move_by(struct draw_state *s, int by)
{
	struct list *l = &s->list;
	long to = (long)l->process + by, last = (long)l->process_count - 1;

	if (s->panel != DRAW_LISTS) {
		scroll_by(s, by);
		return 0;
	}
	if (s->focus == DRAW_SITES) {
		list_move(l, by);
		return 0;
	}
	return list_select(l, to < 0 || last < 0 ? 0 : (size_t)(to > last ? last : to));
}

static int set_filter(struct draw_state *s, size_t length)
{
	s->list.filter[length] = '\0';
	return list_arrange(&s->list);
}

/* A key while the filter is typed. */
static int type(struct draw_state *s, bool special, wint_t key)
{
	size_t length = strlen(s->list.filter);
	mbstate_t state = {0};
	char bytes[MB_LEN_MAX];
	size_t n;

	if (key == '\n' || key == '\r' || (special && key == KEY_ENTER)) {
		s->filtering = false;
		return 0;
	}
	if (!special && key == KEY_ESCAPE) {
		s->filtering = false;
		return set_filter(s, 0);
	}
	if (!special && key == KEY_ERASE_LINE)
		return set_filter(s, 0);
	if ((special && key == KEY_BACKSPACE) || key == KEY_RUBOUT || key == '\b') {
		while (length && (s->list.filter[length - 1] & 0xc0) == 0x80)
			length--;
		return set_filter(s, num_less(length, 1));
	}
	if (special || key < ' ')
		return 0;
	n = wcrtomb(bytes, (wchar_t)key, &state);
	if (n == (size_t)-1 || length + n >= LIST_FILTER)
		return 0;
	memcpy(s->list.filter + length, bytes, n);
	return set_filter(s, length + n);
}

static int go_back(struct draw_state *s)
{
	if (s->panel != DRAW_LISTS) {
		s->panel = DRAW_LISTS;
		return 0;
	}
	return set_filter(s, 0);
}

/* Show what the latest look has, when what is shown may move again. */
static int freeze(struct view *v)
{
	v->state.frozen = !v->state.frozen;
	return v->state.frozen ? 0 : list_show(&v->state.list, v->processes, v->count);
}

static int enter(struct view *v)
{
	struct draw_state *s = &v->state;

	if (s->panel != DRAW_LISTS) {
		s->panel = DRAW_LISTS;
		return 0;
	}
	if (s->focus == DRAW_SITES)
		return open_stack(v);
	s->focus = DRAW_SITES;
	return 0;
}

static int press(struct view *v, wint_t key)
{
	struct draw_state *s = &v->state;
	struct list *l = &s->list;

	switch (key) {
	case 'q':
	case 'Q':
		return 1;
	case 'h':
	case '?':
		s->panel = s->panel == DRAW_HELP ? DRAW_LISTS : DRAW_HELP;
		s->scroll = 0;
		return 0;
	case 'j':
		return move_by(s, 1);
	case 'k':
		return move_by(s, -1);
	case ' ':
		return freeze(v);
	case '\n':
	case '\r':
		return enter(v);
	case KEY_ESCAPE:
		return go_back(s);
	case KEY_REDRAW:
		clearok(curscr, TRUE);
		return 0;
	default:
		break;
	}
	if (s->panel != DRAW_LISTS)
		return 0;
	switch (key) {
	case 's':
		l->sort = (l->sort + 1) % LIST_SORTS;
		return list_arrange(l);
	case '/':
		s->filtering = true;
		return 0;
	case 'p':
		return list_select(l, l->process_count ? (l->process + 1) % l->process_count : 0);
	case '\t':
		s->focus =
		    s->focus == DRAW_SITES && l->process_count > 1 ? DRAW_PROCESSES : DRAW_SITES;
		return 0;
	default:
		return key >= '1' && key <= '9' ? list_select(l, key - '1') : 0;
	}
}

static int press_special(struct view *v, wint_t key)
{
	struct draw_state *s = &v->state;
	int page = (int)num_most(s->page, 2) - 1;

	switch (key) {
	case KEY_UP:
		return move_by(s, -1);
	case KEY_DOWN:
		return move_by(s, 1);
	case KEY_PPAGE:
		return move_by(s, -page);
	case KEY_NPAGE:
		return move_by(s, page);
	case KEY_HOME:
		return move_by(s, -(1 << 20));
	case KEY_END:
		return move_by(s, 1 << 20);
	case KEY_ENTER:
		return enter(v);
	case KEY_BTAB:
		return press(v, '\t');
	case KEY_RESIZE:
		/* A frame for the old size may reach the terminal after the change, so curses does
		 * not know what the terminal shows. */
		clearok(curscr, TRUE);
		return 0;
	default:
		return 0;
	}
}

int view_serve(struct view *v)
{
	bool changed = terminal_serve();
	int r = 0;
	wint_t key;
	int got;

	while (!r && (got = get_wch(&key)) != ERR) {
		bool special = got == KEY_CODE_YES;

		changed = true;
		if (v->state.filtering)
			r = type(&v->state, special, key);
		else
			r = special ? press_special(v, key) : press(v, key);
	}
	if (changed && !r)
		draw(&v->state);
	return r;
}
