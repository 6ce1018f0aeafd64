/* check_text.c - the result of `whyoom check`, for a person. */
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "report/format.h"
#include "report/unrecorded.h"
#include "util/text/fmt.h"

#define EMPTY_NAMED 8u /* empty files that are named; JSON names all */

#define DISK_WORDS                                                                                 \
	"the traces of the run together reached their limit (WHYOOM_MAX_DISK); from then on "      \
	"blocks under 64 KiB are missing"

#define INDENT 14
#define WIDTH 96u /* longer lines are hard to read, however wide the terminal is */

struct page {
	struct str *out;
	struct report_style style;
};

/* A paragraph: the label in the first column, the rest wrapped beside it. */
static void __attribute__((format(printf, 3, 4)))
put_line(const struct page *page, const char *label, const char *format, ...)
{
	struct str text = {0};
	char head[INDENT + 1];
	va_list args;

	va_start(args, format);
	str_vprintf(&text, format, args);
	va_end(args);
	snprintf(head, sizeof(head), "  %-*.*s", INDENT - 2, INDENT - 2, label);
	style_item(page->out, &page->style, head, INDENT, "%s", str_text(&text));
	str_free(&text);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Appends one line for a damaged place: offset, kind, size, thread, period. */
static void put_place(const struct page *page, const struct trace_damage_place *p)
{
	static const char *const words[TRACE_DAMAGE_KINDS] = {
	    [TRACE_DAMAGE_HEADER] = "the header is damaged",
	    [TRACE_DAMAGE_SHORT] = "the end of the file is missing",
	    [TRACE_DAMAGE_LOST] = "a chunk is missing here",
	    [TRACE_DAMAGE_CHUNK] = "the header of a chunk is damaged",
	    [TRACE_DAMAGE_EVENTS] =
		"events contradict the format; the rest of the chunk is skipped",
	    [TRACE_DAMAGE_CHECKSUM] = "the events of a chunk are damaged (checksum)",
	    [TRACE_DAMAGE_REPEATED] = "this chunk is in the file twice",
	    [TRACE_DAMAGE_DEFINITIONS] = "definitions are missing or damaged",
	    [TRACE_DAMAGE_UNDEFINED] = "events refer to stacks that are not defined",
	    [TRACE_DAMAGE_CHECKPOINT] = "a checkpoint is incomplete",
	    [TRACE_DAMAGE_UNREADABLE] = "unreadable",
	};
	struct str text = {0};
	struct fmt a, b;

	if (p->offset || p->kind == TRACE_DAMAGE_HEADER)
		str_printf(&text, "offset %llu: ", (unsigned long long)p->offset);
	if (p->kind == TRACE_DAMAGE_LOST && p->thread)
		str_printf(&text, "chunks are missing from number %u on", p->sequence);
	else
		str_puts(&text, words[p->kind]);
	if (p->bytes)
		str_printf(&text, ", %s", fmt_size(&a, p->bytes));
	if (p->thread)
		str_printf(&text, ", thread %u", p->thread);
	if (p->thread && p->from_ns < p->to_ns)
		str_printf(&text, ", from %s to %s", fmt_duration(&a, p->from_ns),
		    fmt_duration(&b, p->to_ns));
	put_line(page, "", "%s", str_text(&text));
	str_free(&text);
}

static void put_places(const struct page *page, const struct trace_damage *d)
{
	for (size_t i = 0; i < d->count; i++)
		put_place(page, &d->places[i]);
	if (d->more)
		put_line(page, "", "and %llu more places", (unsigned long long)d->more);
}

static void put_whole(
    const struct page *page, const struct trace_facts *f, const struct check_tally *tally)
{
	struct str text = {0};
	struct fmt size;

	if (check_is_whole(f, tally)) {
		str_puts(&text, "yes");
	} else {
		str_puts(&text, "no:");
		if (tally->cut)
			str_printf(&text, " reading stopped: %s;", tally->why.text);
		if (f->damage.bytes)
			str_printf(&text, " %s, %.3g %% of the recording, are missing or damaged;",
			    fmt_size(&size, f->damage.bytes), f->damage.share * 100);
		else if (f->damage.count)
			str_puts(&text, " it is damaged, but no data is known to be missing;");
		if (f->torn_chunks)
			str_printf(&text, " %u chunk%s torn: read up to the tear;", f->torn_chunks,
			    f->torn_chunks == 1 ? " is" : "s are");
		if (f->bad_checksums)
			str_printf(&text, " %u chunk%s a wrong checksum;", f->bad_checksums,
			    f->bad_checksums == 1 ? " has" : "s have");
		if (f->checkpoint.damaged && f->checkpoint.number)
			str_puts(&text,
			    " the newest checkpoint is damaged, so the one before it was read;");
		else if (f->checkpoint.damaged)
			str_puts(&text, " its only checkpoint is damaged;");
		text.text[--text.length] = 0;
	}
	if (f->unknown_records)
		str_printf(&text,
		    " (%u record%s of kinds that this version does not know: format %u.%u)",
		    f->unknown_records, plural(f->unknown_records), f->major, f->minor);
	put_line(page, "whole", "%s", str_text(&text));
	str_free(&text);
	put_places(page, &f->damage);
}

static const char *drop_words(const struct trace_facts *f, size_t reason)
{
	if (!check_drop_words(reason))
		return "of a reason that this version of whyoom does not know";
	if (reason == TRACE_DROP_BUDGET && !f->budget) /* recording went on after a checkpoint */
		return "there was no room for them while a checkpoint replaced older events";
	if (reason == TRACE_DROP_BUDGET && f->disk_bound)
		return DISK_WORDS;
	return check_drop_words(reason);
}

static void put_complete(
    const struct page *page, const struct trace_facts *f, const struct check_tally *tally)
{
	struct fmt n, size;
	struct str text = {0};
	bool first = true;

	if (!f->dropped_total && !f->budget) {
		put_line(page, "complete", "%s",
		    !check_is_whole(f, tally) ? "no: nothing was dropped, but the file is damaged"
		    : f->checkpoint.until_ns
			? "nothing was dropped, but a checkpoint replaced older events"
		    : f->brief_stacks || f->untold
			? "nothing was dropped, but not all stacks are complete"
			: "yes, nothing was dropped");
		return;
	}
	if (!f->dropped_total)
		put_line(page, "complete", "%s",
		    f->disk_bound ? "no: " DISK_WORDS
				  : "no: the trace reached its largest size (WHYOOM_MAX_TRACE); "
				    "from then on blocks under 64 KiB are missing");
	for (size_t i = 0; i < TRACE_DROP_REASONS; i++) {
		if (!f->dropped[i])
			continue;
		str_clear(&text);
		str_printf(&text, "%s%s event%s missing, because %s", first ? "no: " : "",
		    fmt_count(&n, f->dropped[i]), f->dropped[i] == 1 ? " is" : "s are",
		    drop_words(f, i));
		if (i == TRACE_DROP_RIGHTS)
			trace_rights_why(&f->rights, &text);
		put_line(page, first ? "complete" : "", "%s", str_text(&text));
		first = false;
	}
	if (f->dropped_bytes)
		put_line(
		    page, "", "the missing blocks had %s", fmt_size_exact(&size, f->dropped_bytes));
	str_free(&text);
}

/* The rights that the process gave up, and whether its recording went on. */
static void put_rights(const struct page *page, const struct trace_rights_facts *r)
{
	struct str text = {0};
	struct fmt n;

	if (!r->any && !r->stopped_ns && !r->children)
		return;
	str_puts(&text, "gave up ");
	if (r->any)
		trace_rights_list(r, &text);
	else
		str_puts(&text, "rights, by a call that was not recorded");
	if (r->stopped_ns)
		str_printf(&text, "; recording stopped at %s", fmt_duration(&n, r->stopped_ns));
	else
		str_puts(&text, "; recording went on");
	if (r->children)
		str_printf(&text, "; %s forked process%s no trace because of it",
		    fmt_count(&n, r->children), r->children == 1 ? " has" : "es have");
	put_line(page, "rights", "%s", str_text(&text));
	str_free(&text);
}

/* Print what the checkpoint summarised, and which blocks were acquired during pauses. */
static void put_checkpoint(
    const struct page *page, const struct trace_facts *f, const struct trace_replaced *replaced)
{
	const struct trace_checkpoint_facts *c = &f->checkpoint;
	struct fmt a, b, d;
	struct str text = {0};

	if (c->until_ns && !c->number) {
		str_printf(&text, "the first %s are lost", fmt_duration(&a, c->until_ns));
	} else if (c->damaged) {
		str_printf(&text, "the first %s are known only up to an earlier checkpoint",
		    fmt_duration(&a, c->until_ns));
	} else if (c->until_ns) {
		str_printf(&text,
		    "the first %s are summarised: only the blocks that outlived them are known",
		    fmt_duration(&a, c->until_ns));
		if (replaced->periods)
			str_printf(&text,
			    "; this replaced %s of trace with %s blocks acquired and %s released",
			    fmt_size(&a, replaced->trace_bytes), fmt_count(&b, replaced->acquired),
			    fmt_count(&d, replaced->released));
		if (replaced->left_out)
			str_printf(&text, "; there was no room for %s events",
			    fmt_count(&a, replaced->left_out));
	}
	if (text.length)
		put_line(page, "checkpoint", "%s", str_text(&text));
	if (f->paused_bytes)
		put_line(page, "paused", "blocks with %s were acquired while recording was paused",
		    fmt_size(&a, f->paused_bytes));
	if (f->brief_stacks || f->untold)
		put_line(page, "stacks",
		    "the trace ran out of room for stacks: %s are shortened, and %s events have "
		    "none",
		    fmt_count(&a, f->brief_stacks), fmt_count(&b, f->untold));
	str_free(&text);
}

static void put_ran(const struct page *page, const struct trace_facts *f)
{
	time_t start = (time_t)(f->start_real_ns / 1000000000u);
	struct fmt duration;
	struct str text = {0};
	char when[40] = "";
	const char *name;
	struct tm tm;

	if (localtime_r(&start, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	str_printf(&text, "%s from %s on, ", fmt_duration(&duration, f->last_ns), when);
	if (f->running) {
		str_puts(&text, "still running");
	} else if (f->end_how == TRACE_END_EXIT) {
		str_printf(&text, "ended with exit status %u", f->end_code);
	} else if (f->end_how == TRACE_END_SIGNAL) {
		name = f->end_code < 65 ? sigabbrev_np((int)f->end_code) : NULL;
		str_printf(&text, "killed by signal %u%s%s%s", f->end_code, name ? " (SIG" : "",
		    name ? name : "", name ? ")" : "");
	} else if (f->end_how == TRACE_END_EXEC) {
		str_puts(&text, "then replaced by another program (exec)");
	} else if (f->end_how == TRACE_END_DETACHED) {
		str_puts(&text, "then the recording was detached; the program ran on");
	} else {
		str_puts(&text, "end unknown: killed, or the trace was cut off");
	}
	put_line(page, "ran", "%s", str_text(&text));
	str_free(&text);
}

static void put_spaces(const struct page *page, const struct check_tally *tally)
{
	struct fmt a, b, c, d, e;

	for (size_t i = 0; i < tally->spaces.count; i++) {
		const struct check_space *sp = &tally->spaces.items[i];

		put_line(page, sp->name,
		    "%s acquired, %s released; %s still live with %s, at most %s",
		    fmt_count(&a, sp->allocs), fmt_count(&b, sp->frees),
		    fmt_count(&c, sp->live_blocks), fmt_size_exact(&d, sp->live_bytes),
		    fmt_size(&e, sp->most_bytes));
	}
}

static void put_trace(const struct page *page, struct trace *t, const struct check_tally *tally)
{
	const struct trace_facts *f = trace_facts(t);
	const struct trace_counts *counts = trace_counts(t);
	const struct trace_thread *threads;
	size_t thread_count = trace_threads(t, &threads);
	struct fmt a, b, c, d, e;
	struct str text = {0};

	str_safe(page->out, f->path);
	str_putc(page->out, '\n');
	str_printf(&text, "%u", f->pid);
	if (f->image)
		str_printf(&text, ", program %u of this process", f->image + 1);
	for (size_t i = 0; f->argv && f->argv[i] && text.length < 300; i++) {
		str_puts(&text, i ? " " : ": ");
		str_safe(&text, f->argv[i]);
	}
	if (!f->argv && f->exe) {
		str_puts(&text, ": ");
		str_safe(&text, f->exe);
	}
	put_line(page, f->mode == TRACE_MODE_SUPERVISOR ? "whyoom run" : "process", "%s",
	    str_text(&text));
	put_ran(page, f);
	put_whole(page, f, tally);
	put_complete(page, f, tally);
	if (f->mode == TRACE_MODE_SAMPLED)
		put_line(page, "sampled", "small blocks are a sample that stands for all of them");

	put_rights(page, &f->rights);
	put_checkpoint(page, f, &counts->replaced);
	str_clear(&text);
	str_printf(&text, "%s event%s in %s", fmt_count(&a, counts->events), plural(counts->events),
	    fmt_size(&b, f->file_bytes));
	if (f->mode != TRACE_MODE_SUPERVISOR)
		str_printf(&text, ", %s thread%s, %s stack%s", fmt_count(&c, thread_count),
		    plural(thread_count), fmt_count(&d, trace_stack_limit(t) - 1),
		    plural(trace_stack_limit(t) - 1));
	put_line(page, "holds", "%s", str_text(&text));
	if (trace_packed(t))
		put_line(page, "packed", "%s", fmt_size(&a, trace_packed(t)));
	if (trace_is_small(t))
		put_line(page, "small",
		    "shares a file with other small traces; times are exact to 0.2 us");
	str_clear(&text);
	unrecorded_processes(f->mode == TRACE_MODE_SUPERVISOR ? t : NULL, &text);
	if (text.length)
		put_line(page, "beyond", "%s", str_text(&text));
	str_clear(&text);
	unrecorded_programs(&t, 1, &text);
	if (text.length)
		put_line(page, "unrecorded", "%s", str_text(&text));
	if (tally->allocs || tally->frees)
		put_line(page, "blocks",
		    "%s acquired, %s released; %s still live with %s, at most %s at once",
		    fmt_count(&a, tally->allocs), fmt_count(&b, tally->frees),
		    fmt_count(&c, tally->live_blocks), fmt_size_exact(&d, tally->live_bytes),
		    fmt_count(&e, tally->most_live));
	put_spaces(page, tally);
	if (tally->maps || tally->unmaps)
		put_line(page, "mappings", "%s made, %s removed", fmt_count(&a, tally->maps),
		    fmt_count(&b, tally->unmaps));
	if (tally->failed)
		put_line(page, "failed", "%s call%s ran out of memory",
		    fmt_count(&a, tally->failed), plural(tally->failed));
	if (tally->marks)
		put_line(page, "marks", "%s; %s request%s began, %s did not end",
		    fmt_count(&a, tally->marks), fmt_count(&b, tally->requests),
		    plural(tally->requests), fmt_count(&c, tally->open_requests));
	if (counts->tasks)
		put_line(page, "tasks", "%s Python task%s (asyncio tasks, greenlets, callbacks)",
		    fmt_count(&a, counts->tasks), plural(counts->tasks));
	if (counts->repairs)
		put_line(page, "order",
		    "%s event%s moved by a little, to fit what another thread did with the same "
		    "address",
		    fmt_count(&a, counts->repairs), counts->repairs == 1 ? " was" : "s were");
	if (counts->double_allocs)
		put_line(page, counts->repairs ? "" : "order",
		    "%s block%s dropped because the address was handed out again",
		    fmt_count(&a, counts->double_allocs),
		    counts->double_allocs == 1 ? " was" : "s were");
	if (counts->unmatched_frees)
		put_line(page, "unknown", "%s release%s of blocks acquired %s",
		    fmt_count(&a, counts->unmatched_frees), plural(counts->unmatched_frees),
		    f->forked ? "before the fork" : "before recording began, or not recorded");
	str_free(&text);
}

/* The directory itself: disk use, small traces, empty files, losses. */
static void put_set(const struct page *page, const struct trace_set *set)
{
	struct str text = {0};
	struct fmt a, b;
	size_t small = 0;

	for (size_t i = 0; i < set->count; i++)
		small += trace_is_small(set->images[i]);
	if (!set->account.known && !set->empty_count && !small && !set->left_out)
		return;
	str_safe(page->out, set->path);
	str_putc(page->out, '\n');
	if (set->account.known)
		put_line(page, "disk", "the traces of the run take %s of at most %s",
		    fmt_size(&a, set->account.held), fmt_size(&b, set->account.bound));
	if (small)
		put_line(page, "small", "%s of the traces share%s a file with others",
		    fmt_count(&a, small), small == 1 ? "s" : "");
	if (set->empty_count) {
		str_printf(&text, "%s file%s no data yet: ", fmt_count(&a, set->empty_count),
		    set->empty_count == 1 ? " has" : "s have");
		for (size_t i = 0; i < set->empty_count && i < EMPTY_NAMED; i++) {
			str_puts(&text, i ? ", " : "");
			str_safe(&text, set->empty[i]);
		}
		if (set->empty_count > EMPTY_NAMED)
			str_puts(&text, ", ...");
		put_line(page, "empty", "%s", str_text(&text));
	}
	if (set->left_out)
		put_line(page, "missing", "%s file%s, %s, cannot be read, or not completely",
		    fmt_count(&a, set->left_out), set->left_out == 1 ? "" : "s",
		    fmt_size(&b, set->left_out_bytes));
	str_free(&text);
}

void check_text(const struct check_view *v, const struct report_style *style, struct str *out)
{
	struct page page = {out, *style};
	const struct check_tally *tally = v->tallies;

	if (page.style.columns > WIDTH)
		page.style.columns = WIDTH;
	for (size_t i = 0; i < v->set_count; i++) {
		for (size_t k = 0; k < check_trace_count(&v->sets[i]); k++)
			put_trace(&page, check_trace(&v->sets[i], k), tally++);
		put_set(&page, &v->sets[i]);
	}
}
