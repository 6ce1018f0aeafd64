/*
 * diff_phases.c - the curves of both sides in a terminal, aligned by phase: a row of bars for each
 * side, and the numbers of each phase.
 */
#include "report/format.h"
#include "report/parts.h"
#include "util/num.h"
#include "util/text/fmt.h"

#define PHASE_LEAST 9u /* columns that a phase has at least, for its name */
#define CURVE_MOST 72u /* columns of all phases */
/* What two runs of one program differ by is no news: a hundredth of the most that they held. */
#define PHASE_APART 100u

static uint64_t most_of(const struct diff_space *s)
{
	uint64_t most = 0;

	for (size_t i = 0; i < s->phase_count; i++)
		most = num_most(most, num_most(s->phases[i].a.most, s->phases[i].b.most));
	return most;
}

static bool apart(uint64_t a, uint64_t b, uint64_t most)
{
	return (a > b ? a - b : b - a) > most / PHASE_APART;
}

static bool differ(const struct diff_space *s)
{
	uint64_t most = most_of(s);

	for (size_t i = 0; i < s->phase_count; i++) {
		const struct diff_curve *a = &s->phases[i].a, *b = &s->phases[i].b;

		if (a->present && b->present &&
		    (apart(a->most, b->most, most) || apart(a->last, b->last, most)))
			return true;
	}
	return false;
}

/* How wide each phase is: by the longer side's time, but never too narrow for its name. */
static unsigned width_of(const struct diff_space *s, size_t phase, unsigned columns)
{
	double all = 0, own = 0;
	unsigned room;

	for (size_t i = 0; i < s->phase_count; i++) {
		const struct diff_curve *a = &s->phases[i].a, *b = &s->phases[i].b;
		double time = (double)num_most(a->until_ns - a->from_ns, b->until_ns - b->from_ns);

		all += time;
		if (i == phase)
			own = time;
	}
	room = (unsigned)num_less(columns, s->phase_count * PHASE_LEAST);
	return PHASE_LEAST + (all > 0 ? (unsigned)((double)room * own / all) : 0);
}

static void bar(const struct report_style *style, uint64_t value, uint64_t most, struct str *out)
{
	static const char *const eighths[] = {"\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
	    "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86", "\xe2\x96\x87", "\xe2\x96\x88"};
	static const char plain[] = ".:-=+*#@";
	unsigned level = most ? (unsigned)((double)value / (double)most * 7.999) : 0;

	if (style->unicode)
		str_puts(out, eighths[level]);
	else
		str_putc(out, plain[level]);
}

static void bars(const struct report_style *style, const struct diff_curve *c, unsigned columns,
    uint64_t most, struct str *out)
{
	for (unsigned i = 0; i < columns; i++) {
		uint32_t from = i * DIFF_POINTS / columns, to = (i + 1) * DIFF_POINTS / columns;
		uint64_t value = 0;

		if (!c->present || from >= c->points) {
			str_putc(out, ' ');
			continue;
		}
		for (uint32_t k = from; k < num_most(to, from + 1) && k < c->points; k++)
			value = num_most(value, c->at[k]);
		bar(style, value, most, out);
	}
}

static void side_row(const struct diff_space *s, bool second, const struct report_style *style,
    unsigned columns, struct str *out)
{
	uint64_t most = most_of(s);

	str_puts(out, second ? "  B " : "  A ");
	for (size_t i = 0; i < s->phase_count; i++) {
		const struct diff_curve *c = second ? &s->phases[i].b : &s->phases[i].a;

		bars(style, c, width_of(s, i, columns) - 1, most, out);
		str_putc(out, ' ');
	}
	style_end(out);
}

static void numbers(const struct diff_phase *p, const struct report_style *style, struct str *out)
{
	const char *arrow = style->unicode ? "\xe2\x86\x92" : "->";
	const struct diff_curve *a = &p->a, *b = &p->b;
	struct fmt f[6];

	if (!a->present || !b->present) {
		const struct diff_curve *c = a->present ? a : b;

		style_wrap(out, style, 2, "%s, only in %c: %s at most, %s at its end, for %s.",
		    p->name, a->present ? 'A' : 'B', fmt_size(&f[0], c->most),
		    fmt_size(&f[1], c->last), fmt_duration(&f[2], c->until_ns - c->from_ns));
		return;
	}
	style_wrap(out, style, 2, "%s: at most %s %s %s, at its end %s %s %s, for %s %s %s.",
	    p->name, fmt_size_apart(&f[0], a->most, b->most), arrow,
	    fmt_size_apart(&f[1], b->most, a->most), fmt_size_apart(&f[2], a->last, b->last), arrow,
	    fmt_size_apart(&f[3], b->last, a->last), fmt_duration(&f[4], a->until_ns - a->from_ns),
	    arrow, fmt_duration(&f[5], b->until_ns - b->from_ns));
}

void diff_phases_text(const struct diff_space *s, const struct report_style *style, struct str *out)
{
	unsigned columns = (unsigned)num_least(num_less(style->columns, 4u), CURVE_MOST);

	if (!s->a.present || !s->b.present || !most_of(s) ||
	    (!style->verbose && !(s->changed && differ(s))))
		return;
	if (columns >= s->phase_count * PHASE_LEAST) {
		str_puts(out, "    ");
		for (size_t i = 0; i < s->phase_count; i++) {
			style_cell(
			    out, style, s->phases[i].name, width_of(s, i, columns) - 1, false);
			str_putc(out, ' ');
		}
		style_end(out);
		side_row(s, false, style, columns, out);
		side_row(s, true, style, columns, out);
	}
	for (size_t i = 0; i < s->phase_count; i++)
		numbers(&s->phases[i], style, out);
}
