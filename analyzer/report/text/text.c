/*
 * text.c - the report for a person: the verdict first, then where the memory was, then who is to
 * blame, then what to change. One screen; the rest on request.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/format.h"
#include "report/frames.h"
#include "report/parts.h"
#include "report/text/style.h"
#include "util/num.h"
#include "util/text/fmt.h"

/* The words of a command line; where that is too much for a line, paths by their last part. */
static void command(struct str *out, const char *cmdline, unsigned columns)
{
	bool cut = term_columns(cmdline) > columns;

	for (const char *p = cmdline; *p;) {
		size_t blank = strspn(p, " "), word = strcspn(p + blank, " ");
		const char *from = p + blank, *slash = NULL;

		for (size_t i = 0; cut && *from == '/' && i + 1 < word; i++)
			if (from[i] == '/')
				slash = from + i;
		str_add(out, p, blank);
		str_add(out, slash ? slash + 1 : from,
		    slash ? word - (size_t)(slash + 1 - from) : word);
		p = from + word;
	}
}

/* A second cause is named from this confidence on. On a device the sentence of an unknown cause
 * says only what was refused, so the likeliest one is named, too. */
#define RIVAL 0.1

void rival_text(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct verdict *v = &r->verdict;
	bool unknown = v->cause == CAUSE_UNKNOWN, found = false;
	struct str text = {0};
	char where[256];

	if (v->runner_up == CAUSE_UNKNOWN || v->runner_up_confidence < RIVAL ||
	    (unknown && (r->failure.kind != FAILURE_CUDA_OOM || r->coverage.gap)))
		return;
	str_printf(&text, "%s: %s (%.0f %%)", unknown ? "The likeliest cause" : "If it is not that",
	    cause_name(v->runner_up), v->runner_up_confidence * 100);
	for (size_t i = unknown ? 0 : 1; i < r->ranking.count; i++) {
		const struct finding *f = &r->ranking.list[i].finding;
		const struct callsite *p;

		if (f->cause != v->runner_up)
			continue;
		found = true;
		if (f->blame == CALLSITE_NONE)
			continue;
		p = &r->callsites->list[f->blame];
		str_puts(&text, ", in ");
		style_function(&text, st, p->function);
		str_printf(
		    &text, " (%s)", style_where(where, sizeof(where), p->file, p->line, NULL));
	}
	/* Without evidence of its own it only says that a leak may be kept on purpose. */
	if (found)
		style_wrap(out, st, 2, "%s.", str_text(&text));
	str_free(&text);
}

void end_text(const struct verdict_result *r, struct str *out)
{
	const struct process *p = &r->tree.processes[r->tree.subject];
	const char *name = NULL;
	struct fmt a;

	str_printf(out, "pid %u", p->pid);
	if (p->how == END_SIGNAL && p->code < 65)
		name = sigabbrev_np((int)p->code);
	if (name)
		str_printf(out, ", killed by SIG%s", name);
	else if (p->how == END_SIGNAL)
		str_printf(out, ", killed by signal %u", p->code);
	else if (p->how == END_EXIT)
		str_printf(out, ", exit status %u%s", p->code,
		    !p->code && r->failure.kind != FAILURE_NONE &&
			    r->failure.kind != FAILURE_STALLED
			? " (although memory was refused)"
			: "");
	else if (p->how == END_RUNNING)
		str_puts(out, ", still running");
	else if (p->how == END_DETACHED)
		str_puts(out, ", detached");
	else if (r->failure.kind == FAILURE_OOM_KILL)
		str_puts(out, ", killed");
	else
		str_puts(out, ", end unknown");
	str_printf(out, " after %s",
	    fmt_duration(&a, num_sum(p->attached ? p->ran_ns : 0, num_ns(p->seconds))));
	if (p->attached && p->ran_ns)
		str_printf(out, " (attached after %s)", fmt_duration(&a, p->ran_ns));
	else if (p->attached)
		str_puts(out, " (attached later)");
	str_puts(out, ": ");
}

static void headline(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct process *p = &r->tree.processes[r->tree.subject];
	struct str about = {0};
	unsigned columns;

	damage_text(&r->tree.damage, st, out);
	style_verdict(out, st, r->verdict.cause, r->verdict.confidence);
	end_text(r, &about);
	columns = term_columns(str_text(&about));
	command(&about, p->cmdline, st->columns > columns ? st->columns - columns : 0);
	str_puts(out, term_style(st->colour, TERM_DIM));
	columns = term_columns(str_text(&about));
	style_cell(out, st, str_text(&about), columns < st->columns ? columns : st->columns, false);
	str_printf(out, "%s\n", term_style(st->colour, TERM_PLAIN));
	style_wrap(out, st, 2, "%s", r->verdict.summary);
	rival_text(r, st, out);
	prospect_text(r, st, out);
	str_free(&about);
}

static void blamed(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct verdict *v = &r->verdict;
	uint64_t bytes = v->blame.bytes, refused = v->blame.refused;
	struct str title = {0};
	struct fmt a;

	if (!v->blame.function)
		return;
	/* In a series the finding counts only the bytes beyond the first block, but the sentence
	 * above names the whole request. */
	if (v->cause == CAUSE_PROMPT_GROWTH && refused)
		refused = num_most(refused, r->failure.requested_bytes);
	bytes += refused - v->blame.refused;
	str_puts(&title, "To blame: ");
	style_function(&title, st, v->blame.function);
	if (bytes && st->verbose)
		str_printf(&title, ", %s", fmt_size_exact(&a, bytes));
	else if (bytes)
		str_printf(&title, ", %s", fmt_size(&a, bytes));
	if (v->blame.error > 0 && bytes)
		str_printf(&title, " ± %.0f %%", ceil(100 * v->blame.error / (double)bytes));
	if (refused && refused < bytes)
		str_printf(&title, ", %s of it refused", fmt_size(&a, refused));
	style_heading(out, st, "%s", str_text(&title));
	str_free(&title);
	/* From the blamed frame outwards; what it called is seldom the reader's own. */
	if (st->verbose && v->blame.stack.count)
		frames_write(out, st, &v->blame.stack, v->blame.stack.count - 1, 200, 4);
	else
		frames_write(out, st, &v->blame.stack, v->blame.frame, 6, 4);
}

static void fixes(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	if (r->verdict.next) {
		style_heading(out, st, "What to record next");
		style_wrap(out, st, 2, "%s", r->verdict.next);
	}
	if (!r->verdict.fix_count)
		return;
	style_heading(out, st, "What to change");
	for (size_t i = 0; i < r->verdict.fix_count; i++)
		style_fix(out, st, i + 1, r->verdict.fixes[i].for_, r->verdict.fixes[i].text);
}

void evidence_text(const struct evidence *e, struct str *out)
{
	uint64_t whole = e->value >= 0x1p64 ? UINT64_MAX : e->value > 0 ? (uint64_t)e->value : 0;
	struct fmt f;

	switch (fact_unit(e->fact)) {
	case UNIT_BYTES:
		str_puts(out, fmt_size(&f, whole));
		break;
	case UNIT_SHARE:
		str_printf(out, "%.0f %%", e->value * 100);
		break;
	case UNIT_NS:
		str_puts(out, fmt_duration(&f, whole));
		break;
	case UNIT_BLOCKS:
	case UNIT_COUNT:
		str_puts(out, fmt_count(&f, whole));
		break;
	}
}

static void evidence(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	if (!r->verdict.evidence_count)
		return;
	style_heading(out, st, "Evidence");
	for (size_t i = 0; i < r->verdict.evidence_count; i++) {
		struct str line = {0};

		str_printf(&line, "%s: ", fact_text(r->verdict.evidence[i].fact));
		evidence_text(&r->verdict.evidence[i], &line);
		style_item(out, st, "  - ", 4, "%s", str_text(&line));
		str_free(&line);
	}
}

static void candidates(
    const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	bool table = st->columns >= 68;

	if (!r->ranking.count)
		return;
	style_heading(out, st, "Causes considered");
	if (table)
		str_puts(
		    out, "  cause                    score  shape  of growth  further  fits\n");
	for (size_t i = 0; i < r->ranking.count; i++) {
		const struct candidate *c = &r->ranking.list[i];

		if (table) {
			str_printf(out, "  %-24s %5.2f  %5.2f  %8.0f %%  %5.0f %%  %s\n",
			    cause_name(c->finding.cause), c->score, c->finding.strength,
			    c->share * 100, c->further * 100, c->fits ? "yes" : "no");
			continue;
		}
		style_item(out, st, "  - ", 4,
		    "%s: score %.2f, shape %.2f, %.0f %% of the growth, further %.0f %%, %s",
		    cause_name(c->finding.cause), c->score, c->finding.strength, c->share * 100,
		    c->further * 100, c->fits ? "fits" : "does not fit");
	}
}

static void what_ifs(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	struct fmt a;

	if (!r->what_ifs.count)
		return;
	style_heading(out, st, "What if");
	for (size_t i = 0; i < r->what_ifs.count; i++) {
		const struct what_if *w = &r->what_ifs.list[i];

		style_item(out, st, "  - ", 4, "%s: %s, %s", w->change,
		    w->fits ? "fits" : "does not fit", fmt_size_signed(&a, w->headroom));
	}
}

/* Where there are many processes, those that did less than this part of all are counted. */
#define PROCESSES_MAX 12u
#define FEW_EVENTS 100u

static void background(
    const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct failure_view *f = &r->failure;
	const struct coverage *c = &r->coverage;
	uint64_t events = 0, few_events = 0;
	struct str line = {0};
	struct fmt a, b;
	size_t few = 0;

	style_heading(out, st, "Failure");
	if (f->kind == FAILURE_NONE)
		style_wrap(out, st, 2, "kind: %s", failure_kind_name(f->kind));
	else
		style_wrap(out, st, 2, "kind: %s, %s after the %s", failure_kind_name(f->kind),
		    fmt_duration(&a, f->time_ns), r->coverage.attach.any ? "attach" : "start");
	if (f->requested_bytes)
		style_wrap(out, st, 2, "requested: %s", fmt_size_exact(&a, f->requested_bytes));
	style_wrap(out, st, 2, "kind of limit: %s", limit_kind_name(f->limit));
	style_wrap(out, st, 2, "limit: %s", fmt_size_exact(&a, f->limit_bytes));
	style_wrap(out, st, 2, "in use: %s", fmt_size_exact(&a, f->usage_bytes));
	if (f->limit == LIMIT_MAPPINGS)
		style_wrap(out, st, 2, "mappings: %s", fmt_count(&a, f->mappings));
	if (f->kill_evidence)
		style_wrap(out, st, 2, "evidence of a kill: %s", f->kill_evidence);
	for (size_t i = 0; i < r->recoveries.count; i++)
		style_wrap(out, st, 2, "recovered: %s refused at %s%s",
		    fmt_size(&a, r->recoveries.list[i].size),
		    fmt_duration(&b, r->recoveries.list[i].time_ns),
		    r->recoveries.list[i].retried ? ", granted later" : "");
	style_heading(out, st, "Recording");
	style_wrap(out, st, 2, "malloc is: %s", c->malloc_owner ? c->malloc_owner : "unknown");
	style_wrap(out, st, 2, "python: %s", c->python && *c->python ? c->python : "no");
	style_wrap(out, st, 2, "complete: %s; events lost: %s", c->complete ? "yes" : "no",
	    fmt_count(&a, c->lost_events));
	for (size_t i = 0; i < r->tree.count; i++)
		events += r->tree.processes[i].events;
	for (size_t i = 0; i < r->tree.count; i++) {
		const struct process *p = &r->tree.processes[i];

		if (i != r->tree.subject && !p->dropped && p->events < events / FEW_EVENTS &&
		    r->tree.count > PROCESSES_MAX) {
			few++;
			few_events += p->events;
			continue;
		}
		str_clear(&line);
		str_printf(&line, "pid %u, %s events, %s: ", p->pid, fmt_count(&a, p->events),
		    fmt_duration(&b, num_ns(p->seconds)));
		command(&line, p->cmdline, st->columns > 40 ? st->columns - 40 : 0);
		style_item(
		    out, st, i == r->tree.subject ? "  * " : "    ", 4, "%s", str_text(&line));
	}
	if (few)
		style_item(out, st, "    ", 4,
		    "%zu more with %s events in total: `whyoom check` lists them", few,
		    fmt_count(&a, few_events));
	str_free(&line);
}

/* What is known of the time that a checkpoint took the place of. */
static void past(const struct coverage *c, const struct report_style *st, struct str *out)
{
	const struct replaced *p = &c->past;
	struct str line = {0};
	struct fmt a, b, d, e;

	if (!c->checkpoint.until_ns)
		return;
	if (!c->checkpoint.number) {
		str_printf(&line, "the first %s of the recording are lost.",
		    fmt_duration(&a, c->checkpoint.until_ns));
	} else {
		str_printf(&line,
		    "to stay within --%s, the trace summarises the first %s: it has the blocks "
		    "that outlived them, each with its own time and stack",
		    c->disk_bound ? "max-disk" : "max-trace",
		    fmt_duration(&a, c->checkpoint.until_ns));
		if (p->count)
			str_printf(&line,
			    ". The rest, %s of trace, became totals: %s recorded blocks were "
			    "acquired, %s released, and at most %s were in use at once",
			    fmt_size(&a, p->trace_bytes), fmt_count(&b, p->acquired),
			    fmt_count(&d, p->released), fmt_size(&e, p->most_bytes));
		str_puts(&line, ".");
		if (p->left_out)
			str_printf(
			    &line, " There was no room for %s events.", fmt_count(&a, p->left_out));
		if (c->checkpoint.damaged)
			str_puts(&line, " The newest checkpoint is damaged; this one is older.");
	}
	style_item(out, st, "Summarised: ", 12, "%s", str_text(&line));
	str_free(&line);
}

/* Where small blocks are missing. */
static void bounded(const struct coverage *c, const struct report_style *st, struct str *out)
{
	if (c->small_missing)
		style_item(out, st, "Limit: ", 7, "%s",
		    c->disk_bound ? "the traces of the run together reached --max-disk; from then "
				    "on blocks under 64 KiB are missing."
				  : "the trace reached --max-trace; from then on blocks under 64 "
				    "KiB are missing.");
}

/* Of what not all could be told any more. */
static void in_brief(const struct coverage *c, const struct report_style *st, struct str *out)
{
	struct str line = {0};
	struct fmt a, b;

	if (!c->brief_stacks && !c->untold)
		return;
	str_puts(&line, "the definitions of stacks and modules, which are kept for good, took a "
			"quarter of --max-trace.");
	if (c->brief_stacks)
		str_printf(&line,
		    " From then on new stacks have only their outermost and innermost frames: %s "
		    "stacks.",
		    fmt_count(&a, c->brief_stacks));
	if (c->untold)
		str_printf(&line,
		    " There was no room even for these with %s events: their call sites are "
		    "unknown.",
		    fmt_count(&b, c->untold));
	style_item(out, st, "Stacks: ", 8, "%s", str_text(&line));
	str_free(&line);
}

/* Of what the process gave up, and is missing for it. */
static void rights(const struct coverage *c, const struct report_style *st, struct str *out)
{
	struct str line = {0};
	struct fmt a;

	if (!c->rights.stopped_ns && !c->rights.children)
		return;
	trace_rights_why(&c->rights, &line);
	if (c->rights.stopped_ns)
		str_printf(
		    &line, "; recording stopped at %s", fmt_duration(&a, c->rights.stopped_ns));
	if (c->rights.children)
		str_printf(&line, "; %s forked process%s no trace because of it",
		    fmt_count(&a, c->rights.children),
		    c->rights.children == 1 ? " has" : "es have");
	str_puts(&line, ".");
	style_item(out, st, "Rights: ", 8, "%s", str_text(&line));
	str_free(&line);
}

/* What an attached recorder cannot know. */
static void attached(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct attach_facts *x = &r->coverage.attach;
	struct str line = {0};
	struct fmt a, b;

	if (!x->any)
		return;
	if (x->ran_ns)
		str_printf(&line, "%s after the start.", fmt_duration(&a, x->ran_ns));
	else
		str_puts(&line, "later than the start.");
	if (x->there)
		str_printf(&line, " %s were in use then; who allocated them is not known.",
		    fmt_size(&a, x->there));
	if (x->freed)
		str_printf(&line, " %s of them were freed since.", fmt_size(&b, x->freed));
	str_puts(&line, " Causes that need the beginning (oversized-model, batch-prealloc) are not "
			"claimed.");
	style_item(out, st, "Attached: ", 10, "%s", str_text(&line));
	str_free(&line);
}

/* How the record was made, where not every block is in it. */
void recording_text(const struct verdict_result *r, const struct report_style *st, struct str *out)
{
	const struct coverage *c = &r->coverage;
	struct str line = {0};
	struct fmt a, b, d;

	attached(r, st, out);
	past(c, st, out);
	bounded(c, st, out);
	in_brief(c, st, out);
	rights(c, st, out);
	if (c->paused_ns) {
		str_printf(&line, "for %s. Blocks that were acquired then are not in the record.",
		    fmt_duration(&a, c->paused_ns));
		if (c->paused_bytes)
			str_printf(
			    &line, " They had %s, released or not.", fmt_size(&b, c->paused_bytes));
		style_item(out, st, "Paused: ", 8, "%s", str_text(&line));
		str_clear(&line);
	}
	if (!c->sample_every) {
		str_free(&line);
		return;
	}
	str_printf(&line, "of the blocks under %s, one was recorded for each %s (--mode sampled).",
	    fmt_size(&a, c->exact_from), fmt_size(&b, c->sample_every));
	if (c->error >= 1)
		str_printf(&line, " The memory in use is an estimate from these, ± %s.",
		    fmt_size(&d, (uint64_t)c->error));
	if (c->coarser_times)
		str_printf(&line,
		    " To stay within --max-rate the sample became coarser %s time%s, down to one "
		    "block for each %s of those under %s; the error includes that.",
		    fmt_count(&a, c->coarser_times), c->coarser_times == 1 ? "" : "s",
		    fmt_size(&b, c->coarsest_every), fmt_size(&d, c->coarsest_exact_from));
	if (c->thinned_times)
		str_printf(&line,
		    " The live blocks took too much of --max-trace: %s time%s the sample was "
		    "thinned, by %s blocks in all, and now has one for each %s; the error includes "
		    "that, and a larger --max-trace makes it smaller.",
		    fmt_count(&a, c->thinned_times), c->thinned_times == 1 ? "" : "s",
		    fmt_count(&d, c->thinned_blocks), fmt_size(&b, c->thinned_every));
	style_item(out, st, "Sample: ", 8, "%s", str_text(&line));
	str_free(&line);
}

void report_text(const struct report_view *v, const struct report_style *style, struct str *out)
{
	const struct verdict_result *r = v->result;

	headline(r, style, out);
	ledger_text(r, style, out);
	blamed(r, style, out);
	if (r->devices.first)
		device_text(r, style, out);
	flow_text(r, style, out);
	if (r->tree.count > 1 && (style->verbose || processes_matter(r)))
		processes_text(r, style, out);
	if (v->log && v->log->count)
		story_text(v->log, v->joined, style, out);
	fixes(r, style, out);
	if (style->verbose) {
		evidence(r, style, out);
		candidates(r, style, out);
		what_ifs(r, style, out);
		background(r, style, out);
	}
	recording_text(r, style, out);
	for (size_t i = 0; i < r->notes.count; i++)
		style_item(out, style, "Note: ", 6, "%s", r->notes.list[i]);
	if (!style->verbose)
		str_printf(out, "%sEvidence, what-ifs, stacks: --verbose%s\n",
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
	struct str text = {0};

	damage_text(&r->tree.damage, style, &text);
	str_printf(&text, "whyoom: %s%s%s", term_style(style->colour, style_tone(r->verdict.cause)),
	    cause_name(r->verdict.cause), term_style(style->colour, TERM_PLAIN));
	if (r->verdict.confidence > 0)
		str_printf(&text, " (%.0f %% sure)", r->verdict.confidence * 100);
	str_putc(&text, '\n');
	style_wrap(&text, style, 2, "%s", r->verdict.summary);
	head(out, str_text(&text), 6);
	str_clear(&text);
	if (r->verdict.fix_count)
		style_item(&text, style, "  Fix: ", 7, "%s", r->verdict.fixes[0].text);
	else if (r->verdict.next)
		style_item(&text, style, "  Next: ", 8, "%s", r->verdict.next);
	head(out, str_text(&text), 3);
	str_puts(out, "  More: whyoom report ");
	str_safe(out, trace);
	str_putc(out, '\n');
	str_free(&text);
}

const struct format format_text = {.name = "text",
#define RESULT(member, type) .member = member##_text,
    FORMAT_RESULTS(RESULT)
#undef RESULT
};
