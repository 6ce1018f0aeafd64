/*
 * diff_text.c - `whyoom diff` for a person: the sentence, the lines that changed, and what else is
 * not the same on both sides.
 */
#include <math.h>
#include <stdlib.h>

#include "report/format.h"
#include "report/frames.h"
#include "report/parts.h"
#include "util/num.h"
#include "util/text/fmt.h"

/* Above it the two sizes say more than a percentage. */
#define PERCENT_MOST 1000u

/* Narrow terminals lose the side that is known from the other two numbers. */
struct columns {
	unsigned change, a, b, name; /* widths; 0: left out */
};

static struct columns layout(const struct report_style *style)
{
	struct columns c = {12, 11, 11, 0};
	unsigned fixed;

	if (style->columns < 64)
		c.a = 0;
	fixed = c.change + c.a + c.b + 2;
	c.name = style->columns > fixed + 10 ? style->columns - fixed : 10;
	if (c.name > 90)
		c.name = 90;
	return c;
}

static const char *arrow(const struct report_style *style)
{
	return style->unicode ? "\xe2\x86\x92" : "->";
}

static void sides_text(
    const struct diff_side_view *v, char name, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt f;

	str_printf(&line, "%s, pid %u", v->cmdline ? v->cmdline : v->path, v->pid);
	if (v->failure != FAILURE_NONE)
		str_printf(&line, "; %s%s (%s)",
		    v->failure == FAILURE_KILLED ? "killed" : "failed: ",
		    v->failure == FAILURE_KILLED ? "" : failure_kind_name(v->failure),
		    cause_name(v->cause));
	if (v->attached)
		str_puts(&line, "; attached later");
	if (v->sample_every)
		str_printf(&line, "; sampled, a block for every %s", fmt_size(&f, v->sample_every));
	style_item(out, style, name == 'A' ? "  A  " : "  B  ", 5, "%s", str_text(&line));
	str_free(&line);
	damage_text(&v->damage, style, out);
}

static void size_cell(struct str *out, const struct report_style *style,
    const struct diff_amount *amount, uint64_t bytes, unsigned columns)
{
	struct str text = {0};
	struct fmt f;

	str_printf(&text, "%s%s", amount->error > 0 ? "~" : "", fmt_size(&f, bytes));
	style_cell(out, style, str_text(&text), columns, true);
	str_free(&text);
}

static void line_row(const struct diff_line *p, const struct report_style *style,
    const struct columns *c, struct str *out)
{
	bool top = p->kind != DIFF_SAME && (p->reason == DIFF_BY_TOP || p->reason == DIFF_BY_SIZE);
	struct fmt f;

	if (p->kind != DIFF_SAME)
		str_puts(out, term_style(style->colour, p->change > 0 ? TERM_RED : TERM_GREEN));
	style_cell(out, style, fmt_size_signed(&f, p->change), c->change, true);
	if (p->kind != DIFF_SAME)
		str_puts(out, term_style(style->colour, TERM_PLAIN));
	if (c->a)
		size_cell(out, style, &p->a, top ? p->a.top : p->a.bytes, c->a);
	size_cell(out, style, &p->b, top ? p->b.top : p->b.bytes, c->b);
	str_puts(out, "  ");
	style_line(out, style, p->function, p->file, p->line, c->name);
	style_end(out);
}

/* What the numbers of a row do not say. */
static void line_remarks(const struct diff_line *p, const struct report_style *style,
    const struct columns *c, struct str *out)
{
	unsigned indent = c->change + 2;
	struct str line = {0};
	struct fmt a, b;

	if (p->arenas)
		style_wrap(out, style, indent,
		    "the interpreter's arenas for small objects, all together; this line asked for "
		    "most of the difference");
	if (p->kind == DIFF_SAME)
		return;
	if (p->kind == DIFF_NEW || p->kind == DIFF_GONE)
		str_puts(&line, p->kind == DIFF_NEW ? "new" : "gone");
	else if (p->reason == DIFF_BY_TOP)
		str_puts(&line, "when it is busy; it comes and goes");
	else if (p->reason == DIFF_BY_SIZE)
		str_printf(&line, "blocks of %s on average instead of %s",
		    fmt_size_apart(&b, p->b.mean, p->a.mean),
		    fmt_size_apart(&a, p->a.mean, p->b.mean));
	else if (p->a.blocks != p->b.blocks && !p->arenas)
		str_printf(&line, "%s blocks instead of %s", fmt_count(&b, p->b.blocks),
		    fmt_count(&a, p->a.blocks));
	if (p->renamed) {
		str_puts(&line, line.length ? "; before " : "before ");
		fmt_function(&line, p->renamed, "<..>");
	}
	if (p->a.error > 0 || p->b.error > 0)
		str_printf(&line, "%sstandard error %s", line.length ? "; " : "",
		    fmt_size(&a, (uint64_t)hypot(p->a.error, p->b.error)));
	if (line.length)
		style_wrap(out, style, indent, "%s", str_text(&line));
	str_free(&line);
}

static void stacks_text(const struct diff_result *r, const struct diff_line *p,
    const struct report_style *style, const struct columns *c, struct str *out)
{
	for (size_t i = 0; i < p->stack_count; i++) {
		const struct diff_stack *s = &r->stacks[p->first_stack + i];
		struct fmt a, b, d;

		if (!s->stack.count)
			continue;
		style_wrap(out, style, c->change + 2, "%s: %s %s %s",
		    fmt_size_signed(&d, (int64_t)(s->b - s->a)), fmt_size(&a, s->a), arrow(style),
		    fmt_size(&b, s->b));
		frames_write(out, style, &s->stack, s->stack.count - 1, 200, c->change + 4);
	}
}

static void whole_text(const struct diff_result *r, const struct diff_space *s,
    const struct report_style *style, struct str *out)
{
	const struct diff_amount *a = &s->a.amount, *b = &s->b.amount;
	struct str line = {0};
	struct fmt f, g, h;

	str_printf(&line, "%s, %s: %s %s %s (%s", s->name,
	    r->by == DIFF_LIVE ? "live" : "acquired in all", fmt_size_apart(&f, a->bytes, b->bytes),
	    arrow(style), fmt_size_apart(&g, b->bytes, a->bytes),
	    fmt_size_signed(&h, (int64_t)(b->bytes - a->bytes)));
	if (a->bytes && b->bytes / a->bytes < PERCENT_MOST / 100)
		str_printf(&line, ", %+.1f %%",
		    ((double)b->bytes - (double)a->bytes) / (double)a->bytes * 100);
	str_puts(&line, r->per_request ? ") a request" : ")");
	if (a->error > 0 || b->error > 0)
		str_printf(&line, ", standard errors %s and %s", fmt_size(&f, (uint64_t)a->error),
		    fmt_size(&g, (uint64_t)b->error));
	style_heading(out, style, "%s", str_text(&line));
	str_free(&line);
}

/* What was not called a change, in one line: all rows add up to the space. */
static void rest_text(const struct diff_space *s, size_t from, const struct report_style *style,
    const struct columns *c, struct str *out)
{
	struct diff_amount a = {0}, b = {0};
	struct str name = {0};
	struct fmt f;

	for (size_t i = from; i < s->line_count; i++) {
		a.bytes += s->lines[i].a.bytes;
		b.bytes += s->lines[i].b.bytes;
		a.error = hypot(a.error, s->lines[i].a.error);
		b.error = hypot(b.error, s->lines[i].b.error);
	}
	if (from == s->line_count)
		return;
	style_cell(out, style, fmt_size_signed(&f, (int64_t)(b.bytes - a.bytes)), c->change, true);
	if (c->a)
		size_cell(out, style, &a, a.bytes, c->a);
	size_cell(out, style, &b, b.bytes, c->b);
	str_printf(&name, "  %s line%s: no change seen", fmt_count(&f, s->line_count - from),
	    s->line_count - from == 1 ? "" : "s");
	if (from > s->changed || (from && from < s->changed))
		str_printf(&name, ", or not shown");
	str_puts(out, str_text(&name));
	style_end(out);
	str_free(&name);
}

static void match_text(
    const struct diff_space *s, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt a, b;

	if (s->a.unmatched_bytes || s->b.unmatched_bytes)
		str_printf(&line, "Lines without a match hold %s of A and %s of B. ",
		    fmt_size(&a, s->a.unmatched_bytes), fmt_size(&b, s->b.unmatched_bytes));
	if (s->a.by_line_bytes || s->b.by_line_bytes)
		str_printf(&line,
		    "%s of A and %s of B match by their line, but not by their stack.",
		    fmt_size(&a, s->a.by_line_bytes), fmt_size(&b, s->b.by_line_bytes));
	if (line.length)
		style_wrap(out, style, 2, "%s", str_text(&line));
	str_free(&line);
}

/* Holes move a little with each run: by a hundredth of what the space held at least. */
static bool apart(const struct diff_space *s, uint64_t a, uint64_t b)
{
	return (a > b ? a - b : b - a) > num_most(s->a.peak_bytes, s->b.peak_bytes) / 100;
}

/* What malloc and the interpreter keep for later. */
static void kept_text(const struct diff_space *s, const struct report_style *style, const char *who,
    uint64_t a, uint64_t b, struct str *out)
{
	struct fmt f, g;

	if (style->verbose || apart(s, a, b))
		style_wrap(out, style, 2, "Free inside %s: %s %s %s.", who,
		    fmt_size_apart(&f, a, b), arrow(style), fmt_size_apart(&g, b, a));
}

static void layout_text(
    const struct diff_space *s, const struct report_style *style, struct str *out)
{
	const struct diff_layout *a = &s->a.layout, *b = &s->b.layout;
	struct fmt f[4];

	if (a->known && b->known &&
	    (style->verbose || apart(s, a->hole_bytes, b->hole_bytes) ||
		apart(s, a->largest_hole, b->largest_hole)))
		style_wrap(out, style, 2,
		    "Holes: %s in %llu, the largest %s %s %s in %llu, the largest %s.",
		    fmt_size(&f[0], a->hole_bytes), (unsigned long long)a->holes,
		    fmt_size(&f[1], a->largest_hole), arrow(style), fmt_size(&f[2], b->hole_bytes),
		    (unsigned long long)b->holes, fmt_size(&f[3], b->largest_hole));
	if (a->malloc_known && b->malloc_known)
		kept_text(s, style, "malloc", a->malloc_free, b->malloc_free, out);
	if (a->arenas_known && b->arenas_known)
		kept_text(
		    s, style, "the interpreter's arenas", a->arenas_free, b->arenas_free, out);
}

static void space_text(const struct diff_view *v, const struct diff_space *s,
    const struct report_style *style, struct str *out)
{
	const struct diff_result *r = v->result;
	struct columns c = layout(style);
	size_t shown = style->verbose ? s->line_count : s->changed;

	if (v->limit && shown > v->limit)
		shown = v->limit;
	whole_text(r, s, style, out);
	style_cell(out, style, "change", c.change, true);
	if (c.a)
		style_cell(out, style, "A", c.a, true);
	style_cell(out, style, "B", c.b, true);
	str_puts(out, "  function\n");
	for (size_t i = 0; i < shown; i++) {
		line_row(&s->lines[i], style, &c, out);
		line_remarks(&s->lines[i], style, &c, out);
		if (style->verbose)
			stacks_text(r, &s->lines[i], style, &c, out);
	}
	rest_text(s, shown, style, &c, out);
	match_text(s, style, out);
	layout_text(s, style, out);
	diff_phases_text(s, style, out);
}

static void pair_text(const struct diff_fact *f, const struct report_style *style, struct str *out)
{
	struct str line = {0};
	struct fmt a, b;

	str_printf(&line, "%s%s%s: ", f->space ? f->space : "", f->space ? " " : "", f->name);
	if (!f->number)
		str_printf(&line, "%s %s %s", f->a && *f->a ? f->a : "not set", arrow(style),
		    f->b && *f->b ? f->b : "not set");
	else if (f->is_bytes && f->a_value >= 0 && f->b_value >= 0)
		str_printf(&line, "%s %s %s",
		    f->a_known ? fmt_size_apart(&a, (uint64_t)f->a_value, (uint64_t)f->b_value)
			       : "none",
		    arrow(style),
		    f->b_known ? fmt_size_apart(&b, (uint64_t)f->b_value, (uint64_t)f->a_value)
			       : "none");
	else
		str_printf(&line, "%lld %s %lld", (long long)f->a_value, arrow(style),
		    (long long)f->b_value);
	style_wrap(out, style, 2, "%s", str_text(&line));
	str_free(&line);
}

static void facts_text(
    const struct diff_result *r, const struct report_style *style, struct str *out)
{
	static const char *const headings[DIFF_FACT_KINDS] = {"Limits", "Settings", "Versions",
	    "Where the bytes of the limit were", "Requests", NULL};
	enum diff_fact_kind last = DIFF_FACT_KINDS;

	for (enum diff_fact_kind kind = 0; kind < DIFF_FACT_KINDS; kind++)
		for (size_t i = 0; i < r->fact_count; i++) {
			const struct diff_fact *f = &r->facts[i];

			/* Phases stand with the curves of each space. */
			if (f->kind != kind || kind == DIFF_PHASE || !diff_fact_differs(r, f))
				continue;
			/* One run has one verdict, of one moment. */
			if (r->one_run && kind != DIFF_REQUESTS)
				continue;
			if (last != kind)
				style_heading(out, style, "%s", headings[kind]);
			last = kind;
			pair_text(f, style, out);
		}
}

void diff_text(const struct diff_view *v, const struct report_style *style, struct str *out)
{
	const struct diff_result *r = v->result;

	style_title(out, style, "%s", r->sentence);
	str_putc(out, '\n');
	sides_text(&r->a, 'A', style, out);
	sides_text(&r->b, 'B', style, out);
	for (size_t i = 0; i < r->space_count; i++)
		space_text(v, &r->spaces[i], style, out);
	facts_text(r, style, out);
}
