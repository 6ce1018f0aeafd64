#include "watch/screen.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "util/num.h"
#include "util/text/fmt.h"
#include "verdict/forecast/prospect.h"

void screen_rate(double rate, struct str *out)
{
	prospect_rate(rate, out);
}

void screen_when(const struct watched_space *s, struct str *out)
{
	prospect_when(&s->forecast, out);
}

/* Return the space that will be full first, and its process; NULL: none grows. */
static const struct watched_space *first_full(
    const struct watched *const *processes, size_t count, const struct watched **of)
{
	const struct watched_space *first = NULL;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < processes[i]->space_count; k++) {
			const struct watched_space *s = &processes[i]->spaces[k];

			if (s->forecast.state != FORECAST_GROWS ||
			    (first && first->forecast.seconds <= s->forecast.seconds))
				continue;
			first = s;
			*of = processes[i];
		}
	return first;
}

/* Return the one with the least of its limit left; NULL: no limit is known. */
static const struct watched_space *fullest(
    const struct watched *const *processes, size_t count, const struct watched **of)
{
	const struct watched_space *most = NULL;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < processes[i]->space_count; k++) {
			const struct watched_space *s = &processes[i]->spaces[k];

			if (!s->limit ||
			    (most && (double)s->left / (double)s->limit_bytes >=
					 (double)most->left / (double)most->limit_bytes))
				continue;
			most = s;
			*of = processes[i];
		}
	return most;
}

static bool is_known(const struct watched *const *processes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < processes[i]->space_count; k++)
			if (processes[i]->spaces[k].forecast.state != FORECAST_UNKNOWN)
				return true;
	return false;
}

static void add_place(const char *function, const char *file, uint32_t line, struct str *out)
{
	str_safe(out, function ? function : "?");
	if (!file || !*file)
		return;
	str_puts(out, " (");
	str_safe(out, str_base_name(file));
	str_printf(out, ":%" PRIu32 ")", line);
}

static void add_most(const struct watched_site *s, struct str *out)
{
	str_puts(out, ", most of it in ");
	add_place(s->function, s->file, s->line, out);
}

#define SOME_WAIT 0.005 /* less of the time is 0 % */

static void separate(struct str *out, size_t begin)
{
	if (out->length > begin)
		str_puts(out, ", ");
}

void screen_state(const struct watched *w, struct str *out)
{
	const struct pressure *p = &w->pressure;
	size_t begin = out->length;
	struct fmt f;

	if (w->marks)
		str_printf(out, "%s %s in flight", fmt_count(&f, w->in_flight),
		    w->in_flight == 1 ? "request" : "requests");
	if (w->has_tasks) {
		separate(out, begin);
		str_printf(out, "%s %s", fmt_count(&f, w->tasks), w->tasks == 1 ? "task" : "tasks");
	}
	if (p->some >= SOME_WAIT) {
		separate(out, begin);
		str_printf(out, "waits for memory %.0f %% of the time", p->some * 100);
	}
	if (p->throttled_known && p->throttled) {
		separate(out, begin);
		str_printf(out, "%s times at memory.high", fmt_count(&f, p->throttled));
	}
}

void screen_cause(const struct watched *w, struct str *out)
{
	const struct watched_cause *c = &w->likely;

	if (!c->known)
		return;
	if (c->cause == CAUSE_UNKNOWN)
		str_puts(out, "no cause is likely");
	else
		str_printf(
		    out, "likely %s (%.0f %% sure)", cause_name(c->cause), c->confidence * 100);
	if (c->cause == CAUSE_UNKNOWN || !*c->function)
		return;
	str_puts(out, " in ");
	add_place(c->function, c->file, c->line, out);
}

void screen_line(const struct watched *const *processes, size_t count, struct str *out)
{
	const struct watched *of = NULL;
	const struct watched_space *s = first_full(processes, count, &of);
	struct fmt f, g;

	if (s) {
		str_printf(out, "pid %u, %s: ", of->pid, s->name);
		prospect_when(&s->forecast, out);
		str_puts(out, " at ");
		screen_rate(s->forecast.rate, out);
		if (of->listed && of->sites[0].rate > 0)
			add_most(&of->sites[0], out);
		str_puts(out, "\n");
		return;
	}
	s = fullest(processes, count, &of);
	str_puts(
	    out, is_known(processes, count) ? "nothing grows" : "too early to tell what grows");
	if (s)
		str_printf(out, "; least room: pid %u, %s, %s of %s left (%s)", of->pid, s->name,
		    fmt_size(&f, s->left), fmt_size(&g, s->limit_bytes), s->limit);
	str_puts(out, "\n");
}

static void add_space(const struct watched_space *s, struct str *out)
{
	struct fmt f, g;

	str_printf(out, "  %-8s %10s live", s->name, fmt_size(&f, s->live_bytes));
	if (s->reserved_bytes)
		str_printf(out, ", %s reserved", fmt_size(&g, s->reserved_bytes));
	if (s->limit)
		str_printf(out, "; %s of %s left (%s)", fmt_size(&f, s->left),
		    fmt_size(&g, s->limit_bytes), s->limit);
	else
		str_puts(out, "; its limit is not known");
	if (s->forecast.state != FORECAST_UNKNOWN)
		str_puts(out, "; ");
	screen_when(s, out);
	str_puts(out, "\n");
}

static void add_site(const struct watched_site *s, unsigned width, struct str *out)
{
	struct str plain = {0}, name = {0}, rate = {0};
	int room = width > 44 ? (int)width - 44 : 10;
	struct fmt f, g;

	fmt_function(&plain, s->function ? s->function : "?", "…");
	if (s->file)
		str_printf(&plain, "  %s:%" PRIu32, str_base_name(s->file), s->line);
	str_safe(&name, plain.text ? plain.text : "");
	if (s->rate > 0)
		screen_rate(s->rate, &rate);
	str_printf(out, "    %10s %11s  %12s  %.*s\n", fmt_size(&f, s->live_bytes),
	    fmt_count(&g, s->live_count), rate.text ? rate.text : "", room,
	    name.text ? name.text : "");
	str_free(&plain);
	str_free(&name);
	str_free(&rate);
}

/* A line of its own, if there is something to say. */
static void add_line(
    const struct watched *w, void (*say)(const struct watched *w, struct str *out), struct str *out)
{
	struct str text = {0};

	say(w, &text);
	if (text.length)
		str_printf(out, "  %s\n", str_text(&text));
	str_free(&text);
}

void screen_write(
    const struct watched *const *processes, size_t count, unsigned width, struct str *out)
{
	struct fmt f, g;

	screen_line(processes, count, out);
	for (size_t i = 0; i < count; i++) {
		const struct watched *w = processes[i];

		str_printf(out, "\npid %" PRIu32 "  ", w->pid);
		str_safe(out, w->command);
		str_putc(out, '\n');
		str_printf(
		    out, "  %s for %s", w->running ? "runs" : "ran", fmt_duration(&f, w->age_ns));
		if (w->attached && w->ran_ns)
			str_printf(out, " (attached after %s)", fmt_duration(&f, w->ran_ns));
		else if (w->attached)
			str_puts(out, " (attached later)");
		if (w->resident_bytes)
			str_printf(out, ", %s resident", fmt_size(&g, w->resident_bytes));
		if (w->before_bytes)
			str_printf(out, ", %s in use since before the attach",
			    fmt_size(&g, w->before_bytes));
		if (w->refused)
			str_printf(out, ", %s requests were refused", fmt_count(&g, w->refused));
		str_puts(out, w->sampled ? "; sizes are estimates from a sample\n" : "\n");
		add_line(w, screen_state, out);
		add_line(w, screen_cause, out);
		for (size_t k = 0; k < w->space_count; k++)
			add_space(&w->spaces[k], out);
		if (w->listed)
			str_printf(out, "    %10s %11s  %12s  %s\n", "live", "blocks", "grows by",
			    "call site");
		for (size_t k = 0; k < w->listed; k++)
			add_site(&w->sites[k], width, out);
	}
}
