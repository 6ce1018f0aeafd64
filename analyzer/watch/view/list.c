#include "watch/view/list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/text/fmt.h"
#include "watch/screen.h"

const char *list_sort_name(enum list_sort sort)
{
	static const char *const names[] = {"growth", "live", "count", "name"};

	return names[sort];
}

int list_init(struct list *l)
{
	*l = (struct list){.history = history_new()};
	return l->history ? 0 : -ENOMEM;
}

static void processes_free(struct list_process *all, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < all[i].listed; k++) {
			free(all[i].sites[k].function);
			free(all[i].sites[k].file);
			free(all[i].sites[k].name);
			free(all[i].sites[k].line_name);
		}
		free(all[i].sites);
		free(all[i].command);
	}
	free(all);
}

void list_fini(struct list *l)
{
	processes_free(l->processes, l->process_count);
	free(l->headline);
	vec_free(&l->shown);
	history_free(l->history);
	*l = (struct list){0};
}

static struct history_key key_of_site(uint32_t pid, const struct watched_site *s)
{
	return (struct history_key){
	    .pid = pid, .function = s->function, .file = s->file, .line = s->line};
}

static struct history_key key_of_space(uint32_t pid, const struct watched_space *s)
{
	return (struct history_key){.pid = pid, .space = true, .function = s->name};
}

static int note_look(
    struct list *l, const struct watched *const *processes, size_t count, double seconds)
{
	int r = 0;

	history_look(l->history, seconds);
	for (size_t i = 0; i < count; i++) {
		const struct watched *w = processes[i];

		for (size_t k = 0; k < w->space_count && !r; k++) {
			struct history_key key = key_of_space(w->pid, &w->spaces[k]);

			r = history_add(l->history, &key, w->spaces[k].live_bytes);
		}
		for (size_t k = 0; k < w->seen && !r; k++) {
			struct history_key key = key_of_site(w->pid, &w->sites[k]);

			r = history_add(l->history, &key, w->sites[k].live_bytes);
		}
	}
	return r;
}

static char *safe(const char *text)
{
	struct str s = {0};

	str_safe(&s, text);
	if (s.failed) {
		str_free(&s);
		return NULL;
	}
	return s.text ? s.text : strdup("");
}

static int copy_site(
    struct list *l, uint32_t pid, const struct watched_site *from, struct list_site *to)
{
	struct history_key key = key_of_site(pid, from);
	struct str name = {0}, line = {0};
	double seconds;

	*to = (struct list_site){.line = from->line,
	    .live_bytes = from->live_bytes,
	    .live_count = from->live_count,
	    .rate = from->rate};
	fmt_function(&name, from->function ? from->function : "?", "…");
	if (from->file) {
		str_puts(&line, str_base_name(from->file));
		if (from->line)
			str_printf(&line, ":%u", from->line);
	}
	to->function = from->function ? strdup(from->function) : NULL;
	to->file = from->file ? strdup(from->file) : NULL;
	to->name = name.failed ? NULL : safe(str_text(&name));
	to->line_name = line.failed ? NULL : safe(str_text(&line));
	str_free(&name);
	str_free(&line);
	history_levels(l->history, &key, LIST_SPARK, to->spark);
	to->change = history_change(l->history, &key, &seconds);
	l->seconds = seconds > l->seconds ? seconds : l->seconds;
	return (from->function && !to->function) || (from->file && !to->file) || !to->name ||
		       !to->line_name
		   ? -ENOMEM
		   : 0;
}

static int copy_process(struct list *l, const struct watched *from, struct list_process *to)
{
	to->facts = *from;
	memset(to->facts.sites, 0, sizeof(to->facts.sites));
	to->command = safe(from->command);
	to->sites = calloc(from->seen + 1, sizeof(*to->sites));
	if (!to->command || !to->sites)
		return -ENOMEM;
	for (size_t i = 0; i < from->space_count; i++) {
		struct history_key key = key_of_space(from->pid, &from->spaces[i]);

		history_levels(l->history, &key, LIST_SPARK, to->sparks[i]);
	}
	while (to->listed < from->seen) {
		size_t i = to->listed++;
		int r = copy_site(l, from->pid, &from->sites[i], &to->sites[i]);

		if (r)
			return r;
	}
	return 0;
}

static int compare(enum list_sort sort, const struct list_site *a, const struct list_site *b)
{
	if (sort == LIST_BY_NAME) {
		int order = strcmp(a->name, b->name);

		if (order)
			return order;
	}
	if (sort == LIST_BY_COUNT && a->live_count != b->live_count)
		return a->live_count < b->live_count ? 1 : -1;
	if (sort == LIST_BY_GROWTH && a->rate != b->rate)
		return a->rate < b->rate ? 1 : -1;
	return (a->live_bytes < b->live_bytes) - (a->live_bytes > b->live_bytes);
}

static bool passes(const struct list *l, const struct list_site *s)
{
	return !*l->filter || strcasestr(s->name, l->filter) ||
	       strcasestr(s->line_name, l->filter) ||
	       (s->function && strcasestr(s->function, l->filter)) ||
	       (s->file && strcasestr(s->file, l->filter));
}

/* By insertion, which keeps the order of equals: there are WATCHED_SEEN at most. */
static int arrange(struct list *l)
{
	const struct list_process *p = list_process(l);

	l->shown.count = 0;
	for (size_t i = 0; p && i < p->listed; i++) {
		size_t at;

		if (!passes(l, &p->sites[i]))
			continue;
		if (vec_push(&l->shown, i))
			return -ENOMEM;
		for (at = l->shown.count - 1; at > 0; at--) {
			size_t before = l->shown.items[at - 1];

			if (compare(l->sort, &p->sites[before], &p->sites[i]) <= 0)
				break;
			l->shown.items[at] = before;
		}
		l->shown.items[at] = i;
	}
	return 0;
}

static void reselect(
    struct list *l, const char *function, const char *file, uint32_t line, size_t otherwise)
{
	const struct list_process *p = list_process(l);

	l->site = l->shown.count ? num_least(otherwise, l->shown.count - 1) : 0;
	for (size_t i = 0; p && i < l->shown.count; i++) {
		const struct list_site *s = &p->sites[l->shown.items[i]];

		if (s->line == line && str_same(s->function, function) && str_same(s->file, file)) {
			l->site = i;
			return;
		}
	}
}

int list_arrange(struct list *l)
{
	const struct list_site *s = list_site(l);
	int r = arrange(l);

	if (s)
		reselect(l, s->function, s->file, s->line, l->site);
	else
		l->site = 0;
	return r;
}

/* The process that is shown until the person selects one: the one that will be full first.
 * Returns `count` if none grows. */
static size_t most_urgent(const struct list_process *all, size_t count)
{
	size_t first = count;
	double soonest = INFINITY;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < all[i].facts.space_count; k++) {
			const struct forecast *f = &all[i].facts.spaces[k].forecast;

			if (f->state == FORECAST_GROWS && f->seconds < soonest) {
				soonest = f->seconds;
				first = i;
			}
		}
	return first;
}

/* Show the new copies with the old selection, and free the old ones. */
static int replace(struct list *l, struct list_process *all, size_t count, char *headline)
{
	struct list_process *old = l->processes;
	size_t old_count = l->process_count;
	const struct list_site *s = list_site(l);
	size_t urgent = most_urgent(all, count);
	int r;

	l->processes = all;
	l->process_count = count;
	free(l->headline);
	l->headline = headline;
	l->process = count ? num_least(l->process, count - 1) : 0;
	for (size_t i = 0; i < count; i++)
		if (all[i].facts.pid == l->pid)
			l->process = i;
	if (!l->chosen && urgent < count)
		l->process = urgent;
	r = arrange(l);
	if (s && count && all[l->process].facts.pid == l->pid)
		reselect(l, s->function, s->file, s->line, l->site);
	else
		l->site = 0;
	l->pid = count ? all[l->process].facts.pid : 0;
	processes_free(old, old_count);
	return r;
}

int list_take(
    struct list *l, const struct watched *const *processes, size_t count, double seconds, bool show)
{
	int r = note_look(l, processes, count, seconds);

	return r || !show ? r : list_show(l, processes, count);
}

int list_show(struct list *l, const struct watched *const *processes, size_t count)
{
	struct list_process *all;
	struct str headline = {0};
	int r = 0;

	all = calloc(count + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	l->seconds = 0;
	for (size_t i = 0; i < count && !r; i++)
		r = copy_process(l, processes[i], &all[i]);
	screen_line(processes, count, &headline);
	if (r || headline.failed) {
		processes_free(all, count);
		str_free(&headline);
		return -ENOMEM;
	}
	if (headline.length)
		headline.text[headline.length - 1] = '\0'; /* the newline */
	return replace(l, all, count, headline.text);
}

int list_select(struct list *l, size_t process)
{
	if (process >= l->process_count)
		return 0;
	l->chosen = true;
	if (process == l->process)
		return 0;
	l->process = process;
	l->pid = l->processes[process].facts.pid;
	l->site = 0;
	return arrange(l);
}

void list_move(struct list *l, int by)
{
	long to = (long)l->site + by, last = (long)l->shown.count - 1;

	l->site = to < 0 || last < 0 ? 0 : (size_t)(to > last ? last : to);
}

const struct list_process *list_process(const struct list *l)
{
	return l->process < l->process_count ? &l->processes[l->process] : NULL;
}

const struct list_site *list_site(const struct list *l)
{
	const struct list_process *p = list_process(l);

	return p && l->site < l->shown.count ? &p->sites[l->shown.items[l->site]] : NULL;
}
