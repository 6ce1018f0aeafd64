/* screen.c - the page's first screen: plain HTML, in the order in which a person asks. */
#include "report/html/screen_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/frames.h"
#include "report/parts.h"
#include "util/num.h"
#include "util/text/fmt.h"
#include "verdict/device/device.h"
#include "verdict/ledger/classes.h"
#include "verdict/ledger/ledger.h"

static const struct report_style stacks = {.unicode = true, .columns = 160};

static const char *tone(enum cause cause)
{
	return cause == CAUSE_HEALTHY ? "good" : cause == CAUSE_UNKNOWN ? "open" : "bad";
}

/* The script draws it into the curve of that space. */
static void prospect(const struct verdict_result *r, struct str *out)
{
	for (size_t i = 0; i < r->prospect.count; i++) {
		const struct prospect_space *s = &r->prospect.spaces[i];
		const struct forecast *f = &s->forecast;
		struct str text = {0};

		if (f->state != FORECAST_GROWS)
			continue;
		str_printf(out, "<p class=\"prospect%s\" data-space=\"", f->alarm ? " alarm" : "");
		html_text(out, s->curve);
		str_printf(out,
		    "\" data-live=\"%llu\" data-left=\"%llu\" data-now=\"%llu\" "
		    "data-expected=\"%.3f\" data-soonest=\"%.3f\" data-latest=\"",
		    (unsigned long long)s->live_bytes, (unsigned long long)s->left,
		    (unsigned long long)r->prospect.now_ns, f->seconds, f->soonest);
		if (isfinite(f->latest))
			str_printf(out, "%.3f", f->latest);
		str_puts(out, "\">Still running. ");
		prospect_sentence(s, &text);
		html_text(out, str_text(&text));
		str_puts(out, ".</p>\n");
		str_free(&text);
	}
}

static void sentence(const struct verdict_result *r, struct str *out)
{
	const struct process *p = &r->tree.processes[r->tree.subject];
	struct str text = {0};

	damage_text(&r->tree.damage, &wide, &text);
	lines(out, "p", "alert", str_text(&text));
	str_clear(&text);
	str_printf(out, "<section id=\"verdict\" class=\"%s\">\n<p class=\"cause\"><strong>",
	    tone(r->verdict.cause));
	html_text(out, cause_name(r->verdict.cause));
	str_puts(out, "</strong>");
	if (r->verdict.confidence > 0)
		str_printf(out,
		    " <span class=\"sure\"><meter min=\"0\" max=\"100\" value=\"%.0f\" "
		    "aria-hidden=\"true\"></meter> %.0f %% sure</span>",
		    r->verdict.confidence * 100, r->verdict.confidence * 100);
	str_puts(out, "</p>\n");
	tagged(out, "h1", "sentence", r->verdict.summary);
	rival_text(r, &wide, &text);
	lines(out, "p", "rival", str_text(&text));
	str_clear(&text);
	end_text(r, &text);
	str_puts(out, "<p class=\"about\">");
	html_escape(out, str_text(&text));
	str_puts(out, "<code>");
	html_text(out, *p->cmdline ? p->cmdline : "(unknown)");
	str_puts(out, "</code></p>\n");
	prospect(r, out);
	str_puts(out, "</section>\n");
	str_free(&text);
}

static void stack(const struct stack_view *v, size_t from, unsigned most, struct str *out)
{
	struct str text = {0};

	frames_write(&text, &stacks, v, from, most, 0);
	str_puts(out, "<pre class=\"stack\" tabindex=\"0\">");
	html_escape(out, str_text(&text));
	str_puts(out, "</pre>\n");
	str_free(&text);
}

static void blame(const struct verdict_result *r, struct str *out)
{
	const struct verdict *v = &r->verdict;
	char where[256];
	struct fmt a;

	if (!v->blame.function)
		return;
	heading(out, "blame", "Who");
	str_puts(out, "<p class=\"own\"><code class=\"name\">");
	html_text(out, v->blame.function);
	str_puts(out, "</code> <span class=\"where\" title=\"");
	html_text(out, v->blame.file);
	str_puts(out, "\">");
	html_text(out, style_where(where, sizeof(where), v->blame.file, v->blame.line, NULL));
	str_puts(out, "</span>");
	if (v->blame.bytes) {
		str_printf(out, " <b class=\"amount\">%s</b>", fmt_size(&a, v->blame.bytes));
		if (v->blame.error > 0)
			str_printf(
			    out, " ± %.0f %%", ceil(100 * v->blame.error / (double)v->blame.bytes));
	}
	str_puts(out, "</p>\n");
	stack(&v->blame.stack, v->blame.frame, 6, out);
	if (v->blame.stack.count > 1) {
		str_puts(out, "<details><summary>The whole stack</summary>");
		stack(&v->blame.stack, v->blame.stack.count - 1, 200, out);
		str_puts(out, "</details>\n");
	}
	str_puts(out, "</section>\n");
}

/* The colour of a row: classes of the verdict have their own, the rest take turns. */
static unsigned colour(const char *class, unsigned row)
{
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		if (strcmp(class, class_name((enum live_class)i)) == 0)
			return i;
	return strcmp(class, LEDGER_BEFORE) == 0 ? CLASS_COUNT + 4 : CLASS_COUNT + row % 4;
}

static bool is_free(const char *class)
{
	return strcmp(class, LEDGER_FREE) == 0;
}

struct bar {
	const struct ledger *ledger;
	const char *blamed; /* a row's class, or NULL */
	double whole;
};

static void segment(const struct bar *b, const char *class, uint64_t bytes, unsigned row,
    const char *kind, struct str *out)
{
	struct fmt a, c;

	if (!bytes)
		return;
	str_printf(out, "<span class=\"k%u%s%s\" style=\"width:%.3f%%\" title=\"",
	    colour(class, row), kind, b->blamed && !strcmp(class, b->blamed) ? " blamed" : "",
	    100.0 * (double)bytes / b->whole);
	html_text(out, class);
	str_printf(out, ": %s, %s\">", fmt_size(&a, bytes),
	    fmt_percent(&c, bytes, b->ledger->limit_bytes));
	/* A letter, so that colour alone tells nothing. */
	if ((double)bytes / b->whole > 0.03)
		str_printf(out, "<i aria-hidden=\"true\">%c</i>", row < 26 ? 'A' + (int)row : '+');
	str_puts(out, "</span>");
}

static void row(const struct bar *b, const char *class, uint64_t bytes, bool negative, unsigned n,
    const char *kind, struct str *out)
{
	bool blamed = b->blamed && !strcmp(class, b->blamed);
	struct fmt a;

	str_printf(out, "<tr%s><th scope=\"row\"><span class=\"swatch k%u%s\">%c</span>",
	    blamed ? " class=\"blamed\"" : "", colour(class, n), kind, n < 26 ? 'A' + (int)n : '+');
	html_text(out, class);
	str_puts(out, blamed ? " <em>blamed</em></th>" : "</th>");
	str_printf(out, "<td title=\"%s%llu bytes\">%s</td><td>%s</td></tr>\n", negative ? "-" : "",
	    (unsigned long long)bytes,
	    negative ? fmt_size_signed(&a, -(int64_t)bytes) : fmt_size(&a, bytes),
	    negative ? "" : fmt_percent(&(struct fmt){""}, bytes, b->ledger->limit_bytes));
}

/* Rows that matter little are folded away, when they are several. */
#define SMALL_PART 100u

static bool is_small(const struct bar *b, const struct ledger_row *r)
{
	return r->bytes < b->ledger->limit_bytes / SMALL_PART && !is_free(r->class) &&
	       !(b->blamed && !strcmp(r->class, b->blamed));
}

static void unaccounted(const struct bar *b, struct str *out)
{
	int64_t bytes = b->ledger->unaccounted;

	row(b, "unaccounted", bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes, bytes < 0,
	    b->ledger->row_count, " unknown", out);
}

static void rows(const struct bar *b, bool small, struct str *out)
{
	const struct ledger *l = b->ledger;

	str_puts(out, "<table class=\"ledger\"><thead><tr><th scope=\"col\">What</th><th "
		      "scope=\"col\">Bytes</th><th scope=\"col\">Of the "
		      "limit</th></tr></thead><tbody>\n");
	for (uint32_t i = 0; i < l->row_count; i++)
		if (!is_free(l->rows[i].class) && is_small(b, &l->rows[i]) == small)
			row(b, l->rows[i].class, l->rows[i].bytes, false, i, "", out);
	if (!small && l->unaccounted)
		unaccounted(b, out);
	for (uint32_t i = 0; i < l->row_count && !small; i++)
		if (is_free(l->rows[i].class))
			row(b, l->rows[i].class, l->rows[i].bytes, false, i, " free", out);
	str_puts(out, "</tbody></table>\n");
}

static void small_rows(const struct bar *b, struct str *out)
{
	const struct ledger *l = b->ledger;
	uint64_t bytes = 0;
	unsigned count = 0;
	struct fmt a;

	for (uint32_t i = 0; i < l->row_count; i++)
		if (is_small(b, &l->rows[i])) {
			bytes += l->rows[i].bytes;
			count++;
		}
	if (!count)
		return;
	str_printf(out, "<details><summary>%u more, each under 1 %%: %s</summary>\n", count,
	    fmt_size(&a, bytes));
	rows(b, true, out);
	str_puts(out, "</details>\n");
}

static void bar(const struct bar *b, struct str *out)
{
	const struct ledger *l = b->ledger;
	struct fmt a;

	str_puts(out,
	    "<div class=\"bar\" role=\"img\" aria-label=\"The rows of the table below, to "
	    "the scale of the limit\">");
	for (uint32_t i = 0; i < l->row_count; i++)
		if (!is_free(l->rows[i].class))
			segment(b, l->rows[i].class, l->rows[i].bytes, i, "", out);
	if (l->unaccounted > 0)
		segment(b, "unaccounted", (uint64_t)l->unaccounted, l->row_count, " unknown", out);
	for (uint32_t i = 0; i < l->row_count; i++)
		if (is_free(l->rows[i].class))
			segment(b, l->rows[i].class, l->rows[i].bytes, i, " free", out);
	str_puts(out, "</div>\n<div class=\"scale\" aria-hidden=\"true\"><span>0</span>");
	str_printf(out, "<span>%s</span></div>\n", fmt_size(&a, (uint64_t)b->whole));
}

static void ledger(
    const struct verdict_result *r, const struct ledger *l, const char *id, struct str *out)
{
	bool failed = strcmp(l->at, "failure") == 0;
	struct bar b = {l, ledger_blamed(r, l), (double)ledger_sum(l)};
	struct fmt a;

	if (!l->limit_bytes)
		return;
	b.whole = fmax(fmax(b.whole, (double)l->limit_bytes), 1);
	str_printf(out, "<section id=\"%s\"><h2>Where %s", id, fmt_size(&a, l->limit_bytes));
	if (l->space) {
		str_puts(out, " of ");
		html_text(out, l->space);
	}
	if (l->limit == LIMIT_NONE)
		str_puts(out, " went <small>resident");
	else
		str_printf(out, " went <small>limit: %s", limit_kind_name(l->limit));
	if (failed && r->failure.kind != FAILURE_NONE)
		str_printf(out, ", at the failure, after %s</small></h2>\n",
		    fmt_duration(&a, r->failure.time_ns));
	else
		str_printf(out, ", at the %s</small></h2>\n", l->at);
	bar(&b, out);
	rows(&b, false, out);
	small_rows(&b, out);
	if (l->age_ns)
		str_printf(out,
		    "<p class=\"hint\">%s known from a sample taken %s earlier, plus the memory "
		    "acquired since.</p>\n",
		    l->space ? "Free memory is" : "Resident memory is",
		    fmt_duration(&a, l->age_ns));
	str_puts(out, "</section>\n");
}

/* Of other devices, those of which the process holds something. */
static void ledgers(const struct verdict_result *r, struct str *out)
{
	char id[32];

	ledger(r, &r->ledger, "ledger", out);
	for (size_t i = 0; i < r->devices.count; i++) {
		const struct device_report *d = &r->devices.list[i];

		snprintf(id, sizeof(id), "ledger-%zu", i);
		if (!(r->ledger.space && d == r->devices.first) && d->explained)
			ledger(r, &d->ledger, id, out);
	}
}

static void fixes(const struct verdict *v, struct str *out)
{
	if (v->fix_count) {
		heading(out, "change", "What to change");
		str_puts(out, "<ol class=\"fixes\">\n");
		for (size_t i = 0; i < v->fix_count; i++) {
			str_puts(out, "<li>");
			if (strcmp(v->fixes[i].for_, "any") != 0)
				tagged(out, "b", "for", v->fixes[i].for_);
			html_text(out, v->fixes[i].text);
			str_puts(out, "</li>\n");
		}
		str_puts(out, "</ol></section>\n");
	}
	if (v->next) {
		heading(out, "next", "What to record next");
		tagged(out, "p", "", v->next);
		str_puts(out, "</section>\n");
	}
}

static void what_ifs(const struct verdict_result *r, struct str *out)
{
	struct fmt a;

	if (!r->what_ifs.count)
		return;
	heading(out, "what-if", "What would have fitted");
	str_puts(out,
	    "<table><thead><tr><th scope=\"col\">With this change</th><th "
	    "scope=\"col\">Fits</th><th scope=\"col\">To spare</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < r->what_ifs.count; i++) {
		const struct what_if *w = &r->what_ifs.list[i];

		str_puts(out, "<tr><th scope=\"row\">");
		html_text(out, w->change);
		str_printf(out, "</th><td class=\"%s\">%s</td><td>%s</td></tr>\n",
		    w->fits ? "yes" : "no", w->fits ? "✓ yes" : "✗ no",
		    fmt_size_signed(&a, w->headroom));
	}
	str_puts(out, "</tbody></table></section>\n");
}

static void candidates(const struct verdict_result *r, struct str *out)
{
	str_puts(out, "<table><thead><tr><th scope=\"col\">Cause considered</th><th "
		      "scope=\"col\">Score</th><th scope=\"col\">Of the growth</th><th "
		      "scope=\"col\">Fits without</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < r->ranking.count; i++) {
		const struct candidate *c = &r->ranking.list[i];

		str_printf(out,
		    "<tr><th scope=\"row\">%s</th><td>%.2f</td><td>%.0f %%</td><td>%s</td></tr>\n",
		    cause_name(c->finding.cause), c->score, c->share * 100, c->fits ? "yes" : "no");
	}
	str_puts(out, "</tbody></table>\n");
}

static void evidence(const struct verdict_result *r, struct str *out)
{
	const struct verdict *v = &r->verdict;

	if (!v->evidence_count && !r->ranking.count)
		return;
	heading(out, "evidence", "Evidence");
	if (v->evidence_count)
		str_puts(out, "<dl>\n");
	for (size_t i = 0; i < v->evidence_count; i++) {
		struct str value = {0};

		evidence_text(&v->evidence[i], &value);
		str_puts(out, "<div><dt>");
		html_text(out, fact_text(v->evidence[i].fact));
		str_puts(out, "</dt><dd>");
		html_text(out, str_text(&value));
		str_puts(out, "</dd></div>\n");
		str_free(&value);
	}
	if (v->evidence_count)
		str_puts(out, "</dl>\n");
	if (r->ranking.count)
		candidates(r, out);
	str_puts(out, "</section>\n");
}

/* Results that have a shape of their own as text, taken over as they are. */
static void as_text(const char *id, const char *title, const struct str *text, struct str *out)
{
	const char *from = str_text(text);

	from += strspn(from, "\n");
	if (!*from)
		return;
	str_printf(out, "<section id=\"%s\"><details><summary>%s</summary><pre tabindex=\"0\">", id,
	    title);
	html_escape(out, from);
	str_puts(out, "</pre></details></section>\n");
}

static void others(const struct report_view *v, struct str *out)
{
	static const struct report_style style = {.unicode = true, .columns = 100, .verbose = true};
	const struct verdict_result *r = v->result;
	struct str text = {0};

	if (r->devices.first)
		device_text(r, &style, &text);
	as_text("device", "Device", &text, out);
	str_clear(&text);
	if (v->page)
		page_requests(v->page, &text);
	if (text.length) {
		heading(out, "requests", "Requests");
		str_add(out, str_text(&text), text.length);
		str_puts(out, "</section>\n");
	}
	str_clear(&text);
	flow_text(r, &style, &text);
	as_text("flow", "Phases and requests", &text, out);
	str_clear(&text);
	if (v->page)
		page_processes(v->page, out);
	if (v->log && v->log->count)
		story_text(v->log, v->joined, &style, &text);
	as_text("log", "The log", &text, out);
	str_free(&text);
}

static void unknown(const struct verdict_result *r, struct str *out)
{
	const struct coverage *c = &r->coverage;
	struct str text = {0};
	struct fmt a;

	if (c->lost_events)
		str_printf(&text, "Lost: %s events had no room.\n", fmt_count(&a, c->lost_events));
	if (c->gap)
		str_printf(&text, "Missing: %s\n", c->gap);
	recording_text(r, &wide, &text);
	for (size_t i = 0; i < r->notes.count; i++)
		style_item(&text, &wide, "Note: ", 6, "%s", r->notes.list[i]);
	heading(out, "unknown", "What is not known");
	str_puts(out, "<ul>\n");
	lines(out, "li", "", str_text(&text));
	if (!text.length)
		str_puts(out,
		    "<li>Nothing is known to be missing: every block was recorded, and no "
		    "event was lost.</li>\n");
	str_puts(out, "</ul></section>\n");
	str_free(&text);
}

void screen_html(const struct report_view *v, const struct report_style *style, struct str *out)
{
	const struct verdict_result *r = v->result;

	sentence(r, out);
	ledgers(r, out);
	str_puts(out, "<div class=\"pair\">\n");
	blame(r, out);
	fixes(&r->verdict, out);
	str_puts(out, "</div>\n<div class=\"pair\">\n");
	what_ifs(r, out);
	evidence(r, out);
	str_puts(out, "</div>\n");
	others(v, out);
	unknown(r, out);
}
