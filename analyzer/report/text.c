/*
 * text.c - the report for a person: the verdict first, then where the memory was, then who is to
 * blame, then what to change. One screen; the rest on request.
 */
#include <stdio.h>
#include <string.h>

#include "report/style.h"
#include "util/fmt.h"

static enum term_style tone(const char *cause)
{
	if (strcmp(cause, "healthy") == 0)
		return TERM_GREEN;
	return strcmp(cause, "unknown") == 0 ? TERM_YELLOW : TERM_RED;
}

static void headline(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct process *p = &r->processes[r->subject];
	struct str about = {0};

	str_printf(out, "%s%s%s", term_style(st->colour, tone(r->verdict.cause)), r->verdict.cause,
	    term_style(st->colour, TERM_PLAIN));
	if (r->verdict.confidence > 0)
		str_printf(out, "   %s%.0f %% sure%s", term_style(st->colour, TERM_DIM),
		    r->verdict.confidence * 100, term_style(st->colour, TERM_PLAIN));
	str_putc(out, '\n');
	str_printf(&about, "pid %u", p->pid);
	if (p->how == END_SIGNAL)
		str_printf(&about, ", killed by signal %u", p->code);
	else if (p->how == END_EXIT)
		str_printf(&about, ", exit status %u", p->code);
	else if (p->how == END_RUNNING)
		str_puts(&about, ", still running");
	else
		str_puts(&about, ", end not seen");
	str_printf(&about, " after %.1f s: %s", p->seconds, p->cmdline);
	str_puts(out, term_style(st->colour, TERM_DIM));
	style_cell(out, st, str_text(&about),
	    term_columns(str_text(&about)) < st->columns ? term_columns(str_text(&about))
							 : st->columns,
	    false);
	str_printf(out, "%s\n\n", term_style(st->colour, TERM_PLAIN));
	style_wrap(out, st, 2, r->verdict.summary);
	str_free(&about);
}

/* Of the longest number in its rows, sign included. */
static unsigned ledger_digits(const struct ledger *l)
{
	uint64_t most = l->unaccounted < 0 ? 10 * (0 - (uint64_t)l->unaccounted)
					   : (uint64_t)l->unaccounted;
	unsigned digits = 1;

	for (uint32_t i = 0; i < l->row_count; i++)
		if (l->rows[i].bytes > most)
			most = l->rows[i].bytes;
	for (; most > 9; most /= 10)
		digits++;
	return digits;
}

static void ledger(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct ledger *l = &r->ledger;
	struct str title = {0};
	struct fmt a, b;
	unsigned name = 30, fixed = 2 + 11 + 8, exact, bar;
	double limit = (double)(l->limit_bytes ? l->limit_bytes : 1);

	/* Exact bytes, where there is room for them, then the names, then a bar of what is left. */
	exact = st->verbose ? ledger_digits(l) + 2 : 0;
	if (st->columns < fixed + exact + 20)
		exact = 0;
	fixed += exact;
	if (st->columns < fixed + name)
		name = st->columns - fixed;
	bar = st->columns > fixed + name + 9 ? st->columns - fixed - name - 7 : 0;
	if (bar > 40)
		bar = 40;
	str_printf(&title, "Where %s went", fmt_size(&a, l->limit_bytes));
	if (l->limit == LIMIT_NONE)
		str_printf(&title, " (resident at the high-water mark)");
	else
		str_printf(&title, " (%s, at the %s)", limit_kind_name(l->limit),
		    strcmp(l->at, "failure") == 0 ? "failure" : "high-water mark");
	style_heading(out, st, str_text(&title));
	str_free(&title);
	for (uint32_t i = 0; i <= l->row_count; i++) {
		bool last = i == l->row_count, negative = last && l->unaccounted < 0;
		uint64_t bytes = last ? (uint64_t)l->unaccounted : l->rows[i].bytes;

		str_puts(out, "  ");
		style_cell(out, st, last ? "unaccounted" : l->rows[i].class, name, false);
		style_cell(out, st,
		    negative ? fmt_size_signed(&a, l->unaccounted) : fmt_size(&a, bytes), 11, true);
		if (!negative || exact)
			style_cell(out, st,
			    negative ? "" : fmt_percent(&b, bytes, l->limit_bytes), 8, true);
		if (exact) {
			snprintf(a.text, sizeof(a.text), "%s%llu", negative ? "-" : "",
			    (unsigned long long)(negative ? 0 - bytes : bytes));
			style_cell(out, st, a.text, exact, true);
		}
		if (!negative && bytes && bar) {
			str_puts(out, "  ");
			style_bar(out, st, (double)bytes / limit, bar);
		}
		str_putc(out, '\n');
	}
	if (st->verbose && l->age_ns)
		str_printf(out, "  resident bytes are from a sample %s before\n",
		    fmt_duration(&a, l->age_ns));
}

/* From the blamed frame outwards; in between, what is not the reader's own is left out. Of a
 * recording without stacks there is nothing to show. */
static void stack(const struct report_style *st, const struct stack_view *v, size_t from,
    unsigned most, struct str *out)
{
	unsigned name = st->columns > 120 ? 60 : st->columns < 80 ? (st->columns - 12) / 2 : 34;
	unsigned shown = 0;
	char buffer[256];

	for (size_t i = from < v->count ? from + 1 : v->count; i-- > 0 && shown < most;) {
		const struct symbol *s = &v->symbols[i];
		const char *where;

		if (!s->function)
			continue;
		str_puts(out, shown ? "    from  " : "      in  ");
		style_cell(out, st, s->function, name, false);
		str_puts(out, "  ");
		where = style_where(buffer, sizeof(buffer), s->file, s->line, s->module);
		if (!st->verbose && 12 + name + term_columns(where) > st->columns)
			style_cell(out, st, where, st->columns - 12 - name, false);
		else
			str_safe(out, where);
		str_putc(out, '\n');
		shown++;
	}
}

static void blamed(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct verdict *v = &r->verdict;
	struct str title = {0};
	struct fmt a;

	if (!v->blame.function)
		return;
	str_printf(&title, "Who: %s", v->blame.function);
	if (v->blame.bytes)
		str_printf(&title, ", %s", fmt_size(&a, v->blame.bytes));
	style_heading(out, st, str_text(&title));
	str_free(&title);
	if (st->verbose && v->blame.stack.count)
		stack(st, &v->blame.stack, v->blame.stack.count - 1, 200, out);
	else
		stack(st, &v->blame.stack, v->blame.frame, 6, out);
}

static void fixes(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	char head[32];

	if (r->verdict.next) {
		style_heading(out, st, "What to record next");
		style_wrap(out, st, 2, r->verdict.next);
	}
	if (!r->verdict.fix_count)
		return;
	style_heading(out, st, "What to change");
	for (size_t i = 0; i < r->verdict.fix_count; i++) {
		const struct fix *f = &r->verdict.fixes[i];

		snprintf(head, sizeof(head), "  %zu. ", i + 1);
		if (strcmp(f->for_, "any") == 0) {
			style_item(out, st, head, 5, f->text);
		} else {
			struct str text = {0};

			str_printf(&text, "%s: %s", f->for_, f->text);
			style_item(out, st, head, 5, str_text(&text));
			str_free(&text);
		}
	}
}

static void value(struct str *out, const struct evidence *e)
{
	struct fmt f;

	if (strcmp(e->unit, "bytes") == 0)
		str_puts(out, fmt_size(&f, e->value > 0 ? (uint64_t)e->value : 0));
	else if (strcmp(e->unit, "share") == 0)
		str_printf(out, "%.0f %%", e->value * 100);
	else if (strcmp(e->unit, "ns") == 0)
		str_puts(out, fmt_duration(&f, e->value > 0 ? (uint64_t)e->value : 0));
	else
		str_puts(out, fmt_count(&f, e->value > 0 ? (uint64_t)e->value : 0));
}

static void evidence(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	if (!r->verdict.evidence_count)
		return;
	style_heading(out, st, "Evidence");
	for (size_t i = 0; i < r->verdict.evidence_count; i++) {
		struct str line = {0};

		str_printf(&line, "%s: ", r->verdict.evidence[i].fact);
		value(&line, &r->verdict.evidence[i]);
		style_item(out, st, "  - ", 4, str_text(&line));
		str_free(&line);
	}
}

static void candidates(
    const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	struct fmt a;

	if (!r->candidate_count)
		return;
	style_heading(out, st, "Causes weighed");
	str_puts(out, "  cause                    score  shape  of growth  further  fits\n");
	for (size_t i = 0; i < r->candidate_count; i++) {
		const struct candidate *c = &r->candidates[i];

		str_printf(out, "  %-24s %5.2f  %5.2f  %8.0f %%  %5.0f %%  %s\n", c->finding.cause,
		    c->score, c->finding.strength, c->share * 100, c->further * 100,
		    c->fits ? "yes" : "no");
	}
	if (!r->what_if_count)
		return;
	style_heading(out, st, "What if");
	for (size_t i = 0; i < r->what_if_count; i++)
		str_printf(out, "  %-46s %s, %s\n", r->what_if[i].change,
		    r->what_if[i].fits ? "fits" : "does not fit",
		    fmt_size_signed(&a, r->what_if[i].headroom));
}

static void background(
    const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct failure_view *f = &r->failure;
	const struct coverage *c = &r->coverage;
	struct fmt a, b;

	style_heading(out, st, "Failure");
	str_printf(out, "  kind: %s\n", failure_kind_name(f->kind));
	if (f->kind != FAILURE_NONE)
		str_printf(out, "  %s after the start\n", fmt_duration(&a, f->time_ns));
	if (f->requested_bytes)
		str_printf(out, "  requested: %s\n", fmt_size_exact(&a, f->requested_bytes));
	str_printf(out, "  limit: %s, %s; in use: %s\n", limit_kind_name(f->limit),
	    fmt_size_exact(&a, f->limit_bytes), fmt_size_exact(&b, f->usage_bytes));
	if (f->kill_evidence)
		str_printf(out, "  %s\n", f->kill_evidence);
	for (size_t i = 0; i < r->recovered_count; i++)
		str_printf(out, "  got over: %s refused at %s%s\n",
		    fmt_size(&a, r->recovered[i].size), fmt_duration(&b, r->recovered[i].time_ns),
		    r->recovered[i].retried ? ", granted later" : "");
	style_heading(out, st, "Recording");
	str_puts(out, "  malloc's owner: ");
	str_safe(out, c->malloc_owner ? c->malloc_owner : "not known");
	str_puts(out, "\n  python: ");
	str_safe(out, c->python && *c->python ? c->python : "no");
	str_printf(out, "\n  complete: %s; events lost: %llu\n", c->complete ? "yes" : "no",
	    (unsigned long long)c->lost_events);
	for (size_t i = 0; i < r->process_count; i++) {
		const struct process *p = &r->processes[i];

		str_printf(out, "  %spid %u, %llu events, %.1f s: ", i == r->subject ? "* " : "  ",
		    p->pid, (unsigned long long)p->events, p->seconds);
		style_cell(out, st, p->cmdline,
		    term_columns(p->cmdline) < 60 ? term_columns(p->cmdline) : 60, false);
		str_putc(out, '\n');
	}
}

void report_text(const struct verdict_result *r, const struct report_style *style, struct str *out)
{
	headline(r, style, out);
	ledger(r, style, out);
	blamed(r, style, out);
	fixes(r, style, out);
	if (style->verbose) {
		evidence(r, style, out);
		candidates(r, style, out);
		background(r, style, out);
	}
	for (size_t i = 0; i < r->note_count; i++)
		style_item(out, style, "Note: ", 6, r->notes[i]);
	if (!style->verbose)
		str_printf(out, "\n%sEvidence, what-ifs, stacks: --verbose%s\n",
		    term_style(style->colour, TERM_DIM), term_style(style->colour, TERM_PLAIN));
}

/* The first `most` lines of a text. */
static void head(struct str *out, const char *text, unsigned most)
{
	while (*text && most--) {
		size_t line = strcspn(text, "\n");

		str_add(out, text, line);
		str_putc(out, '\n');
		text += line + (text[line] == '\n');
	}
}

void report_brief(const struct verdict_result *r, const char *trace,
    const struct report_style *style, struct str *out)
{
	struct report_style narrow = *style;
	struct str text = {0}, line = {0};

	str_printf(&text, "whyoom: %s%s%s", term_style(style->colour, tone(r->verdict.cause)),
	    r->verdict.cause, term_style(style->colour, TERM_PLAIN));
	if (r->verdict.confidence > 0)
		str_printf(&text, " (%.0f %% sure)", r->verdict.confidence * 100);
	str_putc(&text, '\n');
	style_wrap(&text, &narrow, 2, r->verdict.summary);
	head(out, str_text(&text), 6);
	str_clear(&text);
	if (r->verdict.fix_count)
		style_item(&text, &narrow, "  Fix: ", 7, r->verdict.fixes[0].text);
	else if (r->verdict.next)
		style_item(&text, &narrow, "  Next: ", 8, r->verdict.next);
	head(out, str_text(&text), 3);
	str_puts(&line, "  More: whyoom report ");
	str_safe(&line, trace);
	str_printf(out, "%s\n", str_text(&line));
	str_free(&text);
	str_free(&line);
}
