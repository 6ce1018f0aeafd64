/*
 * check.c - `whyoom check`: is a trace whole, is it complete, and what does it hold. Reads every
 * event once and judges nothing.
 */
#include "cmd/check.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/run/untraced.h"
#include "report/text/style.h"
#include "util/progress.h"
#include "util/text/fmt.h"
#include "util/vec.h"

#define PROGRESS_EVERY 65536u
#define EMPTY_NAMED 8u /* in text; JSON has them all */

/* Why something was dropped, in the order of enum trace_drop: the key in JSON, and in words. */
static const struct {
	const char *key, *words;
} drops[] = {
    [TRACE_DROP_NO_SPACE] = {"no_space", "there was no room for the trace (disk full, a file size "
					 "limit, or a directory that could not be written)"},
    [TRACE_DROP_NO_MEMORY] = {"no_memory",
	"the trace could not be mapped into the process (limit on "
	"the address space, or no descriptors)"},
    [TRACE_DROP_SIGNAL] = {"signal", "signal handlers allocated more than is kept for them"},
    [TRACE_DROP_NESTED] = {"nested", "they were made while another was being recorded"},
    [TRACE_DROP_BUDGET] = {"budget",
	"the trace reached its largest size (WHYOOM_MAX_TRACE); from then on blocks under 64 KiB "
	"are missing"},
    [TRACE_DROP_DEFINITION] = {"definition", "there was no room for their stacks' definitions"},
    [TRACE_DROP_NO_THREAD] = {"no_thread", "their threads were just starting or already gone"},
    [TRACE_DROP_VFORK] = {"vfork", "they were made between vfork and exec"},
    [TRACE_DROP_RIGHTS] = {"rights", ""}, /* trace_rights_why() */
};
#define DROPS_KNOWN (sizeof(drops) / sizeof(drops[0]))

const char *check_drop_key(size_t reason)
{
	return reason < DROPS_KNOWN ? drops[reason].key : NULL;
}

static int add_live(void *arg, const struct block *b)
{
	struct tally *tally = arg;

	tally->live_blocks++;
	tally->live_bytes += b->size;
	return 0;
}

static void count_mark(struct tally *tally, const struct event *e)
{
	tally->marks++;
	if (e->u.mark.what != TRACE_MARK_REQUEST)
		return;
	if (e->u.mark.phase == TRACE_MARK_BEGIN) {
		tally->requests++;
		tally->open_requests++;
	} else if (e->u.mark.phase == TRACE_MARK_END && tally->open_requests) {
		tally->open_requests--;
	}
}

static void read_all(struct trace *t, struct tally *tally)
{
	const struct trace_facts *facts = trace_facts(t);
	const struct trace_thread *threads;
	struct event event;
	uint64_t n = 0, live = 0;
	int r;

	progress_begin(facts->path, facts->event_bytes);
	while ((r = trace_next(t, &event, &tally->why)) > 0) {
		if (++n % PROGRESS_EVERY == 0)
			progress_step(trace_bytes_read(t));
		live += event.kind == EV_ALLOC || event.kind == EV_UNFREE;
		live -= event.kind == EV_FREE && event.block;
		if (live > tally->most_live)
			tally->most_live = live;
		tally->maps += event.kind == EV_MAP;
		tally->unmaps += event.kind == EV_UNMAP;
		tally->unmaps -= event.kind == EV_UNUNMAP && tally->unmaps;
		tally->failed += event.kind == EV_FAILED;
		if (event.kind == EV_MARK)
			count_mark(tally, &event);
	}
	progress_end();
	tally->cut = r < 0;
	for (size_t i = trace_threads(t, &threads); i-- > 0;) {
		tally->allocs += threads[i].allocs;
		tally->frees += threads[i].frees;
	}
	trace_each_live(t, add_live, tally);
}

#define DISK_WORDS                                                                                 \
	"all traces of the run together reached their bound (WHYOOM_MAX_DISK); from then on "      \
	"blocks under 64 KiB are missing"

bool check_is_whole(const struct trace_facts *f, const struct tally *tally)
{
	return !tally->cut && !f->damage.count && !f->torn_chunks && !f->bad_checksums &&
	       !f->checkpoint.damaged;
}

bool check_is_complete(const struct trace_facts *f, const struct tally *tally)
{
	return !f->dropped_total && !f->budget && !f->checkpoint.until_ns && !f->brief_stacks &&
	       !f->untold && check_is_whole(f, tally);
}

const char *check_end_word(const struct trace_facts *f)
{
	if (f->running)
		return "running";
	switch (f->end_how) {
	case TRACE_END_EXIT:
		return "exit";
	case TRACE_END_SIGNAL:
		return "signal";
	case TRACE_END_EXEC:
		return "exec";
	}
	return "unknown";
}

/* A paragraph: the label in the first column, the rest wrapped beside it. */
static void put_line(struct str *out, const char *label, const char *text)
{
	enum { INDENT = 14, WIDTH = 96 };
	struct report_style style = report_style_of(STDOUT_FILENO);
	char head[INDENT + 1];

	if (style.columns > WIDTH)
		style.columns = WIDTH;
	snprintf(head, sizeof(head), "  %-*.*s", INDENT - 2, INDENT - 2, label);
	style_item(out, &style, head, INDENT, text);
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Appends one line for a damaged place: offset, kind, size, thread, period. */
static void put_place(struct str *out, const struct trace_damage_place *p)
{
	static const char *const words[TRACE_DAMAGE_KINDS] = {
	    [TRACE_DAMAGE_HEADER] = "the header is not what was written",
	    [TRACE_DAMAGE_SHORT] = "the file ends before what was written",
	    [TRACE_DAMAGE_LOST] = "there is no chunk where one was",
	    [TRACE_DAMAGE_CHUNK] = "the header of a chunk is not what was written",
	    [TRACE_DAMAGE_EVENTS] = "events contradict the format; the chunk is not read further",
	    [TRACE_DAMAGE_CHECKSUM] = "the events of the chunk are not what was written",
	    [TRACE_DAMAGE_REPEATED] = "a chunk that is in the file already",
	    [TRACE_DAMAGE_DEFINITIONS] = "definitions are missing or not what was written",
	    [TRACE_DAMAGE_UNDEFINED] = "events name stacks that nothing defines",
	    [TRACE_DAMAGE_CHECKPOINT] = "a checkpoint is not whole",
	    [TRACE_DAMAGE_UNREADABLE] = "this cannot be read",
	};
	struct str text = {0};
	struct fmt a, b;

	if (p->offset || p->kind == TRACE_DAMAGE_HEADER)
		str_printf(&text, "offset %llu: ", (unsigned long long)p->offset);
	if (p->kind == TRACE_DAMAGE_LOST && p->thread)
		str_printf(&text, "chunks from number %u on are missing", p->sequence);
	else
		str_puts(&text, words[p->kind]);
	if (p->bytes)
		str_printf(&text, ", %s", fmt_size(&a, p->bytes));
	if (p->thread)
		str_printf(&text, ", thread %u", p->thread);
	if (p->thread && p->from_ns < p->to_ns)
		str_printf(&text, ", from %s to %s", fmt_duration(&a, p->from_ns),
		    fmt_duration(&b, p->to_ns));
	put_line(out, "", str_text(&text));
	str_free(&text);
}

static void put_callsites(struct str *out, const struct trace_damage *d)
{
	char more[80];

	for (size_t i = 0; i < d->count; i++)
		put_place(out, &d->places[i]);
	snprintf(more, sizeof(more), "and %llu more places", (unsigned long long)d->more);
	if (d->more)
		put_line(out, "", more);
}

static void put_whole(struct str *out, const struct trace_facts *f, const struct tally *tally)
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
			str_printf(&text,
			    " %s, %.3g %% of what was recorded, are missing or not what was "
			    "written;",
			    fmt_size(&size, f->damage.bytes), f->damage.share * 100);
		else if (f->damage.count)
			str_puts(&text, " it is not what was written, though nothing is known to "
					"be missing;");
		if (f->torn_chunks)
			str_printf(&text, " %u chunk%s torn and read as far as sound;",
			    f->torn_chunks, f->torn_chunks == 1 ? " is" : "s are");
		if (f->bad_checksums)
			str_printf(&text, " %u chunk%s not what was written (checksum);",
			    f->bad_checksums, f->bad_checksums == 1 ? " is" : "s are");
		if (f->checkpoint.damaged && f->checkpoint.number)
			str_puts(&text, " the checkpoint that took the place of older chunks is "
					"not whole, and the "
					"one before it was read;");
		else if (f->checkpoint.damaged)
			str_puts(&text,
			    " the checkpoint that took the place of older chunks is not whole;");
		text.text[--text.length] = 0;
	}
	if (f->unknown_records)
		str_printf(&text,
		    " (%u record%s of kinds that this whyoom does not know: format %u.%u)",
		    f->unknown_records, plural(f->unknown_records), f->major, f->minor);
	put_line(out, "whole", str_text(&text));
	str_free(&text);
	put_callsites(out, &f->damage);
}

static const char *drop_words(const struct trace_facts *f, size_t reason)
{
	if (reason >= DROPS_KNOWN)
		return "of a reason that this whyoom does not know";
	if (reason == TRACE_DROP_BUDGET && !f->budget) /* it went on after a checkpoint */
		return "there was no room for them while older events were replaced";
	if (reason == TRACE_DROP_BUDGET && f->disk_bound)
		return DISK_WORDS;
	return drops[reason].words;
}

static void put_complete(struct str *out, const struct trace_facts *f, const struct tally *tally)
{
	struct fmt n, size;
	struct str text = {0};
	bool first = true;

	if (!f->dropped_total && !f->budget) {
		put_line(out, "complete",
		    !check_is_whole(f, tally) ? "no: nothing was dropped, but the file is not whole"
		    : f->checkpoint.until_ns ? "nothing was dropped, but older events were replaced"
		    : f->brief_stacks || f->untold
			? "nothing was dropped, but not all stacks are told"
			: "yes, nothing was dropped");
		return;
	}
	if (!f->dropped_total)
		put_line(out, "complete",
		    f->disk_bound
			? "no: " DISK_WORDS
			: "no: the trace reached its largest size (WHYOOM_MAX_TRACE); from "
			  "then on blocks under 64 KiB are missing");
	for (size_t i = 0; i < TRACE_DROP_REASONS; i++) {
		if (!f->dropped[i])
			continue;
		str_clear(&text);
		str_printf(&text, "%s%s event%s missing, because %s", first ? "no: " : "",
		    fmt_count(&n, f->dropped[i]), f->dropped[i] == 1 ? " is" : "s are",
		    drop_words(f, i));
		if (i == TRACE_DROP_RIGHTS)
			trace_rights_why(&f->rights, &text);
		put_line(out, first ? "complete" : "", str_text(&text));
		first = false;
	}
	if (f->dropped_bytes) {
		str_clear(&text);
		str_printf(&text, "the missing acquisitions had %s",
		    fmt_size_exact(&size, f->dropped_bytes));
		put_line(out, "", str_text(&text));
	}
	str_free(&text);
}

/* What the process gave up, and whether it was recorded on. */
static void put_rights(struct str *out, const struct trace_rights_facts *r)
{
	struct str text = {0};
	struct fmt n;

	if (!r->any && !r->stopped_ns && !r->children)
		return;
	str_puts(&text, "given up: ");
	if (r->any)
		trace_rights_list(r, &text);
	else
		str_puts(&text, "by a call that was not seen");
	if (r->stopped_ns)
		str_printf(&text, "; not recorded since %s", fmt_duration(&n, r->stopped_ns));
	else
		str_puts(&text, "; recording went on");
	if (r->children)
		str_printf(&text, "; %s forked process%s no trace for it",
		    fmt_count(&n, r->children), r->children == 1 ? " has" : "es have");
	put_line(out, "rights", str_text(&text));
	str_free(&text);
}

/* What is known of the time before the checkpoint, and what passed in pauses. */
static void put_past(
    struct str *out, const struct trace_facts *f, const struct trace_replaced *replaced)
{
	const struct trace_checkpoint_facts *c = &f->checkpoint;
	struct fmt a, b, d;
	struct str text = {0};

	if (c->until_ns && !c->number) {
		str_printf(
		    &text, "what happened in the first %s is lost", fmt_duration(&a, c->until_ns));
	} else if (c->damaged) {
		str_printf(&text, "of the first %s only what lived at a moment before is known",
		    fmt_duration(&a, c->until_ns));
	} else if (c->until_ns) {
		str_printf(&text, "of the first %s only what still lived then is known",
		    fmt_duration(&a, c->until_ns));
		if (replaced->periods)
			str_printf(&text,
			    ", in place of %s of the trace, in which %s blocks came and %s went",
			    fmt_size(&a, replaced->trace_bytes), fmt_count(&b, replaced->acquired),
			    fmt_count(&d, replaced->released));
		if (replaced->left_out)
			str_printf(&text, "; there was no room for %s events",
			    fmt_count(&a, replaced->left_out));
	}
	if (text.length)
		put_line(out, "checkpoint", str_text(&text));
	if (f->paused_bytes) {
		str_clear(&text);
		str_printf(&text, "blocks with %s were acquired in pauses and not recorded",
		    fmt_size(&a, f->paused_bytes));
		put_line(out, "paused", str_text(&text));
	}
	if (f->brief_stacks || f->untold) {
		str_clear(&text);
		str_printf(&text,
		    "definitions have taken their share of the budget: %s stacks are told in "
		    "brief, and for %s events there was no room for theirs",
		    fmt_count(&a, f->brief_stacks), fmt_count(&b, f->untold));
		put_line(out, "stacks", str_text(&text));
	}
	str_free(&text);
}

static void put_ran(struct str *out, const struct trace_facts *f)
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
		str_puts(&text, "and still runs");
	} else if (f->end_how == TRACE_END_EXIT) {
		str_printf(&text, "ended with exit status %u", f->end_code);
	} else if (f->end_how == TRACE_END_SIGNAL) {
		name = f->end_code < 65 ? sigabbrev_np((int)f->end_code) : NULL;
		str_printf(&text, "killed by signal %u%s%s%s", f->end_code, name ? " (SIG" : "",
		    name ? name : "", name ? ")" : "");
	} else if (f->end_how == TRACE_END_EXEC) {
		str_puts(&text, "then replaced by another program (exec)");
	} else {
		str_puts(&text, "ended without a word: killed, or cut off");
	}
	put_line(out, "ran", str_text(&text));
	str_free(&text);
}

static void put_text(struct str *out, struct trace *t, const struct tally *tally)
{
	const struct trace_facts *f = trace_facts(t);
	const struct trace_counts *counts = trace_counts(t);
	const struct trace_thread *threads;
	size_t thread_count = trace_threads(t, &threads);
	struct fmt a, b, c, d, e;
	struct str text = {0};

	str_safe(out, f->path);
	str_printf(out, "\n");
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
	put_line(out, f->mode == TRACE_MODE_SUPERVISOR ? "whyoom run" : "process", str_text(&text));
	put_ran(out, f);
	put_whole(out, f, tally);
	put_complete(out, f, tally);
	if (f->mode == TRACE_MODE_SAMPLED)
		put_line(out, "sampled", "of small blocks, those that stand for the others");

	put_rights(out, &f->rights);
	put_past(out, f, &counts->replaced);
	str_clear(&text);
	str_printf(&text, "%s event%s in %s", fmt_count(&a, counts->events), plural(counts->events),
	    fmt_size(&b, f->file_bytes));
	if (f->mode != TRACE_MODE_SUPERVISOR)
		str_printf(&text, ", %s thread%s, %s stack%s", fmt_count(&c, thread_count),
		    plural(thread_count), fmt_count(&d, trace_stack_limit(t) - 1),
		    plural(trace_stack_limit(t) - 1));
	put_line(out, "holds", str_text(&text));
	if (trace_packed(t))
		put_line(out, "packed", fmt_size(&a, trace_packed(t)));
	if (trace_is_small(t))
		put_line(out, "small", "in a file of small traces, times to within 0.2 us");
	str_clear(&text);
	run_untraced_words(f->mode == TRACE_MODE_SUPERVISOR ? t : NULL, &text);
	if (text.length)
		put_line(out, "beyond", str_text(&text));
	str_clear(&text);
	run_untraced_programs(&t, 1, &text);
	if (text.length)
		put_line(out, "unrecorded", str_text(&text));
	if (tally->allocs || tally->frees) {
		str_clear(&text);
		str_printf(&text, "%s acquired, %s released; %s still live",
		    fmt_count(&a, tally->allocs), fmt_count(&b, tally->frees),
		    fmt_count(&c, tally->live_blocks));
		str_printf(&text, " with %s, at most %s at once",
		    fmt_size_exact(&d, tally->live_bytes), fmt_count(&e, tally->most_live));
		put_line(out, "blocks", str_text(&text));
	}
	if (tally->maps || tally->unmaps) {
		str_clear(&text);
		str_printf(&text, "%s made, %s removed", fmt_count(&a, tally->maps),
		    fmt_count(&b, tally->unmaps));
		put_line(out, "mappings", str_text(&text));
	}
	if (tally->failed) {
		str_clear(&text);
		str_printf(&text, "%s call%s ran out of memory", fmt_count(&a, tally->failed),
		    plural(tally->failed));
		put_line(out, "failed", str_text(&text));
	}
	if (tally->marks) {
		str_clear(&text);
		str_printf(&text, "%s; %s request%s began, %s of them did not end",
		    fmt_count(&a, tally->marks), fmt_count(&b, tally->requests),
		    plural(tally->requests), fmt_count(&c, tally->open_requests));
		put_line(out, "marks", str_text(&text));
	}
	if (counts->tasks) {
		str_clear(&text);
		str_printf(&text, "%s of Python's (asyncio tasks, greenlets, callbacks)",
		    fmt_count(&a, counts->tasks));
		put_line(out, "tasks", str_text(&text));
	}
	if (counts->repairs) {
		str_clear(&text);
		str_printf(&text,
		    "%s event%s noted a little late or early, beside what another thread noted of "
		    "the same address, and put in order",
		    fmt_count(&a, counts->repairs), counts->repairs == 1 ? " was" : "s were");
		put_line(out, "order", str_text(&text));
	}
	if (counts->double_allocs) {
		str_clear(&text);
		str_printf(&text, "%s block%s given up because the address was handed out again",
		    fmt_count(&a, counts->double_allocs),
		    counts->double_allocs == 1 ? " was" : "s were");
		put_line(out, counts->repairs ? "" : "order", str_text(&text));
	}
	if (counts->unmatched_frees) {
		str_clear(&text);
		str_printf(&text, "%s release%s of blocks that were acquired %s",
		    fmt_count(&a, counts->unmatched_frees), plural(counts->unmatched_frees),
		    f->forked ? "before the fork" : "before the recording, or not recorded");
		put_line(out, "unknown", str_text(&text));
	}
	str_free(&text);
}

/* One set for each TRACE argument, kept for the JSON output after its traces are closed. */
struct looked_at {
	VEC(struct trace_set) sets;
};

static void looked_at_free(struct looked_at *l)
{
	for (size_t i = 0; i < l->sets.count; i++)
		trace_set_close(&l->sets.items[i]);
	vec_free(&l->sets);
}

/* Takes it out of the set, which is closed. */
static int looked_at_add(struct looked_at *l, struct trace_set *set)
{
	struct trace_set rest = {.path = set->path,
	    .empty = set->empty,
	    .empty_count = set->empty_count,
	    .left_out = set->left_out,
	    .left_out_bytes = set->left_out_bytes,
	    .account = set->account};
	int r = vec_push(&l->sets, rest);

	if (!r) {
		set->path = NULL;
		set->empty = NULL;
		set->empty_count = 0;
	}
	return r;
}

/* Appends the lines about the directory itself: disk use, small traces, empty files, losses. */
static void put_set_text(struct str *out, const struct trace_set *set)
{
	struct str text = {0};
	struct fmt a, b;
	size_t small = 0;

	for (size_t i = 0; i < set->count; i++)
		small += trace_is_small(set->images[i]);
	if (!set->account.known && !set->empty_count && !small && !set->left_out)
		return;
	str_safe(out, set->path);
	str_putc(out, '\n');
	if (set->account.known) {
		str_printf(&text, "all traces of the run together take %s, of %s at most",
		    fmt_size(&a, set->account.held), fmt_size(&b, set->account.bound));
		put_line(out, "disk", str_text(&text));
	}
	if (small) {
		str_clear(&text);
		str_printf(&text, "%s of the traces share%s a file with others",
		    fmt_count(&a, small), small == 1 ? "s" : "");
		put_line(out, "small", str_text(&text));
	}
	if (set->empty_count) {
		str_clear(&text);
		str_printf(&text, "%s file%s nothing yet: ", fmt_count(&a, set->empty_count),
		    set->empty_count == 1 ? " that holds" : "s that hold");
		for (size_t i = 0; i < set->empty_count && i < EMPTY_NAMED; i++) {
			str_puts(&text, i ? ", " : "");
			str_safe(&text, set->empty[i]);
		}
		if (set->empty_count > EMPTY_NAMED)
			str_puts(&text, ", ...");
		put_line(out, "empty", str_text(&text));
	}
	if (set->left_out) {
		str_clear(&text);
		str_printf(&text, "of %s file%s nothing, or not all, can be read: %s",
		    fmt_count(&a, set->left_out), set->left_out == 1 ? "" : "s",
		    fmt_size(&b, set->left_out_bytes));
		put_line(out, "missing", str_text(&text));
	}
	str_free(&text);
}

static const struct option options[] = {
    {"format", required_argument, NULL, 'f'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int check_main(int argc, char **argv)
{
	struct str out = {0};
	struct json json = {.out = &out, .pretty = true};
	struct looked_at looked_at = {0};
	bool as_json = false, damaged = false;
	struct err err = {""};
	int option;

	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, "f:h", options, NULL)) != -1) {
		if (option == 'h') {
			cmd_help(&cmd_check, stdout);
			return CMD_DONE;
		}
		if (option != 'f')
			return cmd_usage(&cmd_check,
			    "unknown option, or one without its value: '%s'", argv[optind - 1]);
		as_json = !strcmp(optarg, "json");
		if (!as_json && strcmp(optarg, "text") != 0)
			return cmd_usage(&cmd_check, "no format '%s': text or json", optarg);
	}
	if (optind == argc)
		return cmd_usage(&cmd_check, "no trace named");
	if (as_json) {
		json_object(&json, NULL);
		json_u64(&json, "schema", 1);
		json_array(&json, "processes");
	}
	for (; optind < argc; optind++) {
		struct trace_set set;

		if (trace_set_open(argv[optind], &set, &err)) {
			looked_at_free(&looked_at);
			str_free(&out);
			return cmd_error(&err);
		}
		for (size_t i = 0; i < set.count + (set.supervisor != NULL); i++) {
			struct trace *t = i < set.count ? set.images[i] : set.supervisor;
			struct tally tally = {0};

			read_all(t, &tally);
			damaged |= !check_is_whole(trace_facts(t), &tally);
			if (as_json && i < set.count)
				check_json(&json, t, &tally);
			else if (!as_json)
				put_text(&out, t, &tally);
		}
		if (!as_json)
			put_set_text(&out, &set);
		else if (looked_at_add(&looked_at, &set))
			out.failed = true;
		damaged |= set.left_out > 0;
		trace_set_close(&set);
	}
	if (as_json) {
		json_array_end(&json);
		json_array(&json, "directories");
		for (size_t i = 0; i < looked_at.sets.count; i++)
			check_set_json(&json, &looked_at.sets.items[i]);
		json_array_end(&json);
		json_object_end(&json);
		str_putc(&out, '\n');
	}
	looked_at_free(&looked_at);
	if (out.failed) {
		str_free(&out);
		err_set(&err, -ENOMEM, "out of memory");
		return cmd_error(&err);
	}
	fputs(str_text(&out), stdout);
	str_free(&out);
	return damaged ? CMD_ERROR : CMD_DONE;
}

const struct command cmd_check = {
    .name = "check",
    .arguments = "TRACE... [--format text|json]",
    .summary = "is a trace whole, and what does it hold",
    .details =
	"TRACE is a directory of traces, or one file.\n\n"
	"  --format FORMAT  text (the default) or json\n\n"
	"Exit status 1 when a file cannot be read, or is not what was written. A process that was\n"
	"killed leaves a whole one.\n",
    .main = check_main,
};
