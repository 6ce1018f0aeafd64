/*
 * diff_screen.c - the first screen of a comparison's page: the sentence, then both sides beside
 * each other, in tables that need no script.
 */
#include <math.h>
#include <stdlib.h>

#include "report/frames.h"
#include "report/html/screen_parts.h"
#include "report/parts.h"
#include "util/num.h"
#include "util/text/fmt.h"

#define CHANGES_SHOWN 12u /* rows; the page's table has all */
/* Above it the two sizes say more than a percentage. */
#define PERCENT_MOST 1000u

static void cell_text(struct str *out, const char *text)
{
	str_puts(out, "<td class=\"text\">");
	html_text(out, text);
	str_puts(out, "</td>");
}

static void row_head(struct str *out, const char *text)
{
	str_puts(out, "<tr><th scope=\"row\">");
	html_text(out, text);
	str_puts(out, "</th>");
}

static void table_begin(struct str *out, const char *const *columns, size_t count)
{
	str_puts(out, "<div class=\"scroll\" tabindex=\"0\"><table class=\"sides\"><thead><tr>");
	for (size_t i = 0; i < count; i++)
		str_printf(out, "<th scope=\"col\">%s</th>", columns[i]);
	str_puts(out, "</tr></thead><tbody>\n");
}

static void table_end(struct str *out)
{
	str_puts(out, "</tbody></table></div>\n");
}

#define TABLE(out, ...)                                                                            \
	table_begin(out, (const char *const[]){__VA_ARGS__},                                       \
	    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* The sign, an arrow and a colour say the same. */
static void change_cell(struct str *out, int64_t change, bool counts)
{
	const char *arrow = !change ? "" : change > 0 ? "▲ " : "▼ ";
	struct fmt f;

	str_printf(out, "<td class=\"%s\"",
	    !counts || !change ? "even"
	    : change > 0       ? "up"
			       : "down");
	str_printf(out, " title=\"%+lld bytes\">%s%s</td>", (long long)change, counts ? arrow : "",
	    fmt_size_signed(&f, change));
}

static void size_cell(struct str *out, uint64_t bytes, double error)
{
	struct fmt f;

	str_printf(out, "<td title=\"%llu bytes", (unsigned long long)bytes);
	if (error > 0)
		str_printf(out, ", standard error %s", fmt_size(&f, (uint64_t)error));
	str_printf(out, "\">%s%s</td>", error > 0 ? "~" : "", fmt_size(&f, bytes));
}

static void share_cell(struct str *out, uint64_t a, uint64_t b)
{
	if (a && b / a < PERCENT_MOST / 100)
		str_printf(out, "<td>%+.1f %%</td>", ((double)b - (double)a) / (double)a * 100);
	else
		str_puts(out, a || b ? "<td>–</td>" : "<td></td>");
}

static void side(const struct diff_side_view *v, char name, struct str *out)
{
	struct str text = {0};
	struct fmt f;

	str_printf(out, "<p class=\"about\"><b class=\"side\">%c</b> <code>", name);
	html_text(out, v->cmdline ? v->cmdline : v->path);
	str_printf(out, "</code>, pid %u", v->pid);
	if (v->failure == FAILURE_KILLED)
		str_puts(&text, ", killed");
	else if (v->failure != FAILURE_NONE)
		str_printf(&text, ", failed: %s", failure_kind_name(v->failure));
	if (v->failure != FAILURE_NONE)
		str_printf(&text, " (%s)", cause_name(v->cause));
	str_printf(&text, "; at %s%s", v->at[0] >= 'a' && v->at[0] <= 'z' ? "the " : "", v->at);
	if (v->attached)
		str_puts(&text, "; attached later");
	if (v->sample_every)
		str_printf(
		    &text, "; a sample, a block for every %s", fmt_size(&f, v->sample_every));
	html_text(out, str_text(&text));
	str_puts(out, "</p>\n");
	str_free(&text);
}

static void sentence(const struct diff_result *r, struct str *out)
{
	struct str text = {0};
	struct fmt f;

	damage_text(&r->a.damage, &wide, &text);
	damage_text(&r->b.damage, &wide, &text);
	lines(out, "p", "alert", str_text(&text));
	str_free(&text);
	str_printf(out, "<section id=\"verdict\" class=\"%s\">\n<p class=\"cause\"><strong>",
	    r->change_count ? "open" : "good");
	if (r->change_count)
		str_printf(out, "%s line%s changed", fmt_count(&f, r->change_count),
		    r->change_count == 1 ? "" : "s");
	else
		str_puts(out, "no change seen");
	str_puts(out, "</strong></p>\n");
	tagged(out, "h1", "sentence", r->sentence);
	side(&r->a, 'A', out);
	side(&r->b, 'B', out);
	str_puts(out, "</section>\n");
}

/* How it is seen that the line changed; what the numbers beside it do not say. */
static void remarks(const struct diff_line *p, struct str *out)
{
	struct str line = {0};
	struct fmt a, b;

	str_puts(&line, diff_kind_name(p->kind));
	if (p->kind == DIFF_GREW || p->kind == DIFF_SHRANK) {
		if (p->reason == DIFF_BY_TOP)
			str_puts(&line, " when it is busy; it comes and goes");
		else if (p->reason == DIFF_BY_SIZE)
			str_printf(&line, ": blocks of %s on average instead of %s",
			    fmt_size_apart(&b, p->b.mean, p->a.mean),
			    fmt_size_apart(&a, p->a.mean, p->b.mean));
		else if (p->a.blocks != p->b.blocks && !p->arenas)
			str_printf(&line, ": %s blocks instead of %s", fmt_count(&b, p->b.blocks),
			    fmt_count(&a, p->a.blocks));
	}
	if (p->renamed) {
		str_puts(&line, "; before ");
		fmt_function(&line, p->renamed, "<..>");
	}
	if (p->arenas)
		str_puts(&line, "; all arenas for small objects");
	str_puts(out, "<td class=\"text\">");
	html_text(out, str_text(&line));
	str_puts(out, "</td>");
	str_free(&line);
}

static void line_cell(const struct diff_line *p, struct str *out)
{
	struct str name = {0};
	char where[256];

	fmt_function(&name, p->function, "<..>");
	str_puts(out, "<tr><th scope=\"row\"><code class=\"name\">");
	html_text(out, str_text(&name));
	str_puts(out, "</code> <span class=\"where\">");
	html_text(out, style_where(where, sizeof(where), p->file, p->line, NULL));
	str_puts(out, "</span></th>");
	str_free(&name);
}

static void changes(const struct diff_result *r, struct str *out)
{
	size_t shown = num_least(r->change_count, CHANGES_SHOWN);
	struct fmt f;

	if (!shown)
		return;
	str_printf(out, "<section id=\"changes\"><h2>What changed <small>%s%s</small></h2>\n",
	    r->by == DIFF_LIVE ? "live bytes" : "bytes acquired in all",
	    r->per_request ? ", for each request" : "");
	TABLE(out, "Line", "Change", "A", "B", "Space", "How");
	for (size_t i = 0; i < shown; i++) {
		const struct diff_line *p = r->changes[i];
		bool top = p->reason == DIFF_BY_TOP || p->reason == DIFF_BY_SIZE;

		line_cell(p, out);
		change_cell(out, p->change, true);
		size_cell(out, top ? p->a.top : p->a.bytes, p->a.error);
		size_cell(out, top ? p->b.top : p->b.bytes, p->b.error);
		cell_text(out, r->change_spaces[i]->name);
		remarks(p, out);
		str_puts(out, "</tr>\n");
	}
	table_end(out);
	if (shown < r->change_count)
		str_printf(out, "<p class=\"hint\">%s more are in the table of lines below.</p>\n",
		    fmt_count(&f, r->change_count - shown));
	str_puts(out, "</section>\n");
}

static void spaces(const struct diff_result *r, struct str *out)
{
	struct fmt f;

	str_printf(out, "<section id=\"spaces\"><h2>In all <small>%s%s</small></h2>\n",
	    r->by == DIFF_LIVE ? "live bytes at the moment" : "bytes acquired until the moment",
	    r->per_request ? ", for each request" : "");
	TABLE(out, "Space", "A", "B", "Change", "", "Peak of A", "Peak of B", "After");
	for (size_t i = 0; i < r->space_count; i++) {
		const struct diff_space *s = &r->spaces[i];
		const struct diff_amount *a = &s->a.amount, *b = &s->b.amount;

		row_head(out, s->name);
		size_cell(out, a->bytes, a->error);
		size_cell(out, b->bytes, b->error);
		change_cell(out, (int64_t)(b->bytes - a->bytes), s->changed);
		share_cell(out, a->bytes, b->bytes);
		size_cell(out, s->a.peak_bytes, 0);
		size_cell(out, s->b.peak_bytes, 0);
		str_printf(out, "<td>%s → ", fmt_duration(&f, s->a.time_ns));
		str_printf(out, "%s</td></tr>\n", fmt_duration(&f, s->b.time_ns));
	}
	table_end(out);
	str_puts(out, "</section>\n");
}

static void phase_side(const struct diff_curve *c, struct str *out)
{
	struct fmt f;

	if (!c->present) {
		str_puts(out, "<td>–</td><td>–</td><td>–</td>");
		return;
	}
	size_cell(out, c->most, 0);
	size_cell(out, c->last, 0);
	str_printf(out, "<td>%s</td>", fmt_duration(&f, c->until_ns - c->from_ns));
}

static void phases(const struct diff_result *r, struct str *out)
{
	bool any = false;

	for (size_t i = 0; i < r->space_count; i++)
		any |= r->spaces[i].phase_count > 1;
	if (!any)
		return;
	str_puts(out,
	    "<section id=\"phases\"><h2>By phase <small>live bytes: the most in it, and at "
	    "its end</small></h2>\n");
	TABLE(out, "Phase", "A at most", "at its end", "for", "B at most", "at its end", "for");
	for (size_t i = 0; i < r->space_count; i++)
		for (size_t k = 0; k < r->spaces[i].phase_count; k++) {
			const struct diff_phase *p = &r->spaces[i].phases[k];
			struct str name = {0};

			if (!p->a.present && !p->b.present)
				continue;
			str_printf(&name, "%s%s%s", r->space_count > 1 ? r->spaces[i].name : "",
			    r->space_count > 1 ? ": " : "", p->name);
			row_head(out, str_text(&name));
			phase_side(&p->a, out);
			phase_side(&p->b, out);
			str_puts(out, "</tr>\n");
			str_free(&name);
		}
	table_end(out);
	str_puts(out, "</section>\n");
}

static void pair_row(const char *space, const char *what, bool a_known, uint64_t a, bool b_known,
    uint64_t b, struct str *out)
{
	struct str name = {0};

	if (!a_known && !b_known)
		return;
	str_printf(&name, "%s %s", space, what);
	row_head(out, str_text(&name));
	str_free(&name);
	if (a_known)
		size_cell(out, a, 0);
	else
		str_puts(out, "<td>–</td>");
	if (b_known)
		size_cell(out, b, 0);
	else
		str_puts(out, "<td>–</td>");
	if (a_known && b_known)
		change_cell(out, (int64_t)(b - a), false);
	else
		str_puts(out, "<td></td>");
	str_puts(out, "</tr>\n");
}

static void holes(const struct diff_result *r, struct str *out)
{
	bool any = false;

	for (size_t i = 0; i < r->space_count; i++)
		any |= r->spaces[i].a.layout.known || r->spaces[i].b.layout.known;
	if (!any)
		return;
	str_puts(out, "<section id=\"holes\"><h2>Holes <small>free bytes between blocks, and what "
		      "allocators keep</small></h2>\n");
	TABLE(out, "What", "A", "B", "Change");
	for (size_t i = 0; i < r->space_count; i++) {
		const struct diff_layout *a = &r->spaces[i].a.layout, *b = &r->spaces[i].b.layout;
		const char *name = r->spaces[i].name;

		pair_row(name, "holes", a->known, a->hole_bytes, b->known, b->hole_bytes, out);
		pair_row(name, "largest hole", a->known, a->largest_hole, b->known, b->largest_hole,
		    out);
		pair_row(name, "free inside malloc", a->malloc_known, a->malloc_free,
		    b->malloc_known, b->malloc_free, out);
		pair_row(name, "free inside the interpreter's arenas", a->arenas_known,
		    a->arenas_free, b->arenas_known, b->arenas_free, out);
	}
	table_end(out);
	str_puts(out, "</section>\n");
}

static void number_cell(bool known, bool is_bytes, int64_t value, struct str *out)
{
	struct fmt f;

	if (!known)
		str_puts(out, "<td>–</td>");
	else if (is_bytes && value >= 0)
		size_cell(out, (uint64_t)value, 0);
	else if (is_bytes)
		str_printf(out, "<td>%s</td>", fmt_size_signed(&f, value));
	else
		str_printf(out, "<td>%lld</td>", (long long)value);
}

static void fact_row(const struct diff_result *r, const struct diff_fact *f, struct str *out)
{
	struct str name = {0};

	str_printf(&name, "%s%s%s", f->space ? f->space : "", f->space ? " " : "", f->name);
	row_head(out, str_text(&name));
	str_free(&name);
	if (!f->number) {
		cell_text(out, f->a && *f->a ? f->a : "not set");
		cell_text(out, f->b && *f->b ? f->b : "not set");
		str_puts(out, diff_fact_differs(r, f) ? "<td>differs</td>" : "<td>same</td>");
	} else {
		number_cell(f->a_known, f->is_bytes, f->a_value, out);
		number_cell(f->b_known, f->is_bytes, f->b_value, out);
		if (f->is_bytes && f->kind == DIFF_LEDGER)
			change_cell(out,
			    (f->b_known ? f->b_value : 0) - (f->a_known ? f->a_value : 0),
			    diff_fact_differs(r, f));
		else
			str_printf(out, "<td>%s</td>",
			    f->a_known && f->b_known && f->a_value == f->b_value ? "same"
										 : "differs");
	}
	str_puts(out, "</tr>\n");
}

static size_t count_facts(const struct diff_result *r, enum diff_fact_kind kind, bool differ)
{
	size_t count = 0;

	for (size_t i = 0; i < r->fact_count; i++)
		count += r->facts[i].kind == kind && diff_fact_differs(r, &r->facts[i]) == differ;
	return count;
}

static void fact_rows(
    const struct diff_result *r, enum diff_fact_kind kind, bool differ, struct str *out)
{
	TABLE(out, "What", "A", "B", "Change");
	for (size_t i = 0; i < r->fact_count; i++)
		if (r->facts[i].kind == kind && diff_fact_differs(r, &r->facts[i]) == differ)
			fact_row(r, &r->facts[i], out);
	table_end(out);
}

static void same_rows(const struct diff_result *r, enum diff_fact_kind kind, size_t count,
    const char *what, struct str *out)
{
	struct fmt f;

	str_printf(out, "<details><summary>%s %s</summary>\n", fmt_count(&f, count), what);
	fact_rows(r, kind, false, out);
	str_puts(out, "</details>\n");
}

/* What differs; the rest is folded away. One run has one verdict, of one moment. */
static void facts(
    const struct diff_result *r, enum diff_fact_kind kind, const char *title, struct str *out)
{
	size_t same = count_facts(r, kind, false);

	if (!count_facts(r, kind, true) || (r->one_run && kind != DIFF_REQUESTS))
		return;
	heading(out, diff_fact_kind_name(kind), title);
	fact_rows(r, kind, true, out);
	if (same)
		same_rows(r, kind, same,
		    kind == DIFF_LEDGER ? "that do not differ by more than a hundredth"
					: "that are the same",
		    out);
	str_puts(out, "</section>\n");
}

/* Kinds of facts of which none differs. */
static void same(const struct diff_result *r, struct str *out)
{
	static const struct {
		enum diff_fact_kind kind;
		const char *name;
	} kinds[] = {{DIFF_LEDGER, "rows of the ledger"}, {DIFF_REQUESTS, "numbers of requests"},
	    {DIFF_LIMIT, "limits"}, {DIFF_SETTING, "settings"}, {DIFF_VERSION, "versions"}};
	bool begun = false;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t count = count_facts(r, kinds[i].kind, false);

		if (!count || r->one_run || count_facts(r, kinds[i].kind, true))
			continue;
		if (!begun)
			heading(out, "same", "The same on both sides");
		begun = true;
		same_rows(r, kinds[i].kind, count, kinds[i].name, out);
	}
	if (begun)
		str_puts(out, "</section>\n");
}

static void unknown(const struct diff_result *r, struct str *out)
{
	size_t before;
	struct fmt a, b;

	heading(out, "unknown", "What is not known");
	str_puts(out, "<ul>\n");
	before = out->length;
	for (size_t i = 0; i < r->space_count; i++) {
		const struct diff_space *s = &r->spaces[i];
		struct str text = {0};

		if (s->a.amount.error > 0 || s->b.amount.error > 0)
			str_printf(&text, "%s is a sample: standard errors of %s and %s.\n",
			    s->name, fmt_size(&a, (uint64_t)s->a.amount.error),
			    fmt_size(&b, (uint64_t)s->b.amount.error));
		if (s->a.unmatched_bytes || s->b.unmatched_bytes)
			str_printf(&text, "%s: lines without a match hold %s of A and %s of B.\n",
			    s->name, fmt_size(&a, s->a.unmatched_bytes),
			    fmt_size(&b, s->b.unmatched_bytes));
		if (s->a.by_line_bytes || s->b.by_line_bytes)
			str_printf(&text,
			    "%s: %s of A and %s of B match by their line, but not by their "
			    "stack.\n",
			    s->name, fmt_size(&a, s->a.by_line_bytes),
			    fmt_size(&b, s->b.by_line_bytes));
		lines(out, "li", "", str_text(&text));
		str_free(&text);
	}
	if (out->length == before)
		str_puts(out, "<li>Nothing is known to be missing: all lines and stacks have a "
			      "match.</li>\n");
	str_puts(out, "</ul></section>\n");
}

void diff_screen_html(const struct diff_view *v, struct str *out)
{
	const struct diff_result *r = v->result;

	str_puts(out,
	    "<header><b class=\"brand\">whyoom diff</b><div id=\"tools\"></div></header>\n"
	    "<main>\n");
	sentence(r, out);
	changes(r, out);
	spaces(r, out);
	str_puts(out, "<div class=\"pair\">\n");
	facts(r, DIFF_LEDGER, "Where the bytes of the limit were", out);
	facts(r, DIFF_REQUESTS, "Requests", out);
	str_puts(out, "</div>\n");
	phases(r, out);
	str_puts(out, "<div class=\"pair\">\n");
	holes(r, out);
	facts(r, DIFF_LIMIT, "Limits", out);
	facts(r, DIFF_SETTING, "Settings", out);
	facts(r, DIFF_VERSION, "Versions", out);
	same(r, out);
	str_puts(out, "</div>\n");
	unknown(r, out);
	str_puts(out, "</main>\n");
}
