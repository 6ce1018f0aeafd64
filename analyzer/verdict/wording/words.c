#include "verdict/wording/words.h"

#include <math.h>
#include <string.h>

#include "util/num.h"
#include "util/text/fmt.h"
#include "util/text/str.h"
#include "verdict/device/device.h"
#include "verdict/failure/kill.h"
#include "verdict/failure/volume.h"
#include "verdict/judge/arena_blame.h"
#include "verdict/judge/coverage.h"
#include "verdict/judge/decide.h"
#include "verdict/ledger/ledger.h"
#include "verdict/wording/ending.h"

static void add_blame(struct str *s, const struct verdict_result *r)
{
	ending_callsite(s, r->verdict.blame.function, r->verdict.blame.file, r->verdict.blame.line);
}

static const struct callsite *main_callsite(const struct verdict_result *r)
{
	return r->ranking.count && r->ranking.list[0].finding.blame != CALLSITE_NONE
		   ? &r->callsites->list[r->ranking.list[0].finding.blame]
		   : NULL;
}

static uint64_t fact(const struct verdict_result *r, enum fact fact)
{
	return (uint64_t)finding_fact(&r->ranking.list[0].finding, fact);
}

static uint64_t live(const struct verdict_result *r)
{
	return r->callsites->live_bytes + r->callsites->map_bytes;
}

/* Return what everything but the blamed bytes took: of a limit that counts more than blocks, all
 * that counts, or the sum would seem to fit. */
static uint64_t others(const struct verdict_result *r, uint64_t own)
{
	const struct failure_view *f = &r->failure;
	uint64_t used = f->limit == LIMIT_AS || f->limit == LIMIT_DATA || limit_is_cgroup(f->limit)
			    ? f->usage_bytes
			    : 0;

	return num_less(num_most(live(r), used), own);
}

/* "; everything else took 340 MiB" */
static void add_others(struct str *s, const struct verdict_result *r, uint64_t own)
{
	uint64_t bytes = others(r, own);
	struct fmt a;

	if (bytes)
		str_printf(s, "; everything else took %s", fmt_size(&a, bytes));
}

/* Larger blocks each time. */
static void add_growth(struct str *s, const struct verdict_result *r, const struct callsite *p)
{
	bool within = r->ranking.list[0].finding.form == FORM_WITHIN;
	uint64_t first = within ? p->size.run.first : num_least(p->size.start, p->size.first);
	uint64_t last = num_most(p->facts.largest, p->size.last);
	uint64_t count = within ? p->size.run.rises + 1 : p->facts.total_count;
	uint64_t all = r->ranking.list[0].finding.bytes;
	struct fmt a, b, c, d;

	if (all > last + last / NEARLY_PART)
		str_printf(s, "%s grow with the prompt: ", fmt_size(&a, all));
	add_blame(s, r);
	str_printf(s, " allocates larger and larger blocks%s: %s at first, %s at the %s",
	    within ? " in the last request" : "", fmt_size(&b, first), fmt_size(&c, last),
	    fmt_ordinal(&d, count));
	if (fact(r, FACT_GROWTH_KEPT))
		str_printf(s, "; the %s that it builds from are kept",
		    fmt_size(&a, fact(r, FACT_GROWTH_KEPT)));
}

static void words_prompt_growth(struct str *s, const struct verdict_result *r)
{
	const struct callsite *p = main_callsite(r);
	const struct proportion_found *input = &r->callsites->proportion;
	struct fmt a, b, c;

	if (r->ranking.list[0].finding.form == FORM_DOUBLING) {
		add_blame(s, r);
		str_printf(s,
		    " enlarges one block by a factor whenever it is full, from %s to %s, and holds "
		    "the old one until the new one is filled",
		    fmt_size(&a, num_least(p->size.start, p->size.first)),
		    fmt_size(&b, num_most(p->facts.largest, p->size.last)));
	} else if (p->size.grows || r->ranking.list[0].finding.form == FORM_WITHIN) {
		add_growth(s, r, p);
	} else if (input->callsite == r->ranking.list[0].finding.blame) {
		add_blame(s, r);
		str_printf(s,
		    " allocates in proportion to its input: %s for the last one, of %s, and %s for "
		    "a typical one before",
		    fmt_size(&a, input->target), fmt_size(&b, input->input),
		    fmt_size(&c, input->typical));
	} else if (p->buildup.grows) {
		add_blame(s, r);
		str_printf(s,
		    " holds more at once on each call, and then frees all of it: %s at first, %s "
		    "at the end",
		    fmt_size(&a, p->buildup.first), fmt_size(&b, p->buildup.now));
	} else {
		add_blame(s, r);
		str_printf(s, " keeps %s, and each step goes through all of it again",
		    fmt_size(&a, r->ranking.list[0].finding.bytes));
	}
	ending_add(s, r, SAID_CAUSE);
}

/* Threads and files that stay are no blocks. */
static void words_left(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	struct fmt a, b;

	if (f->form == FORM_STACKS) {
		str_printf(s, "%s threads have not ended, most of them started by ",
		    fmt_count(&a, fact(r, FACT_THREADS)));
		add_blame(s, r);
		str_printf(s, ": their stacks take %s", fmt_size(&b, fact(r, FACT_STACKS)));
	} else if (f->form == FORM_UNJOINED) {
		str_printf(s,
		    "%s of stacks are left of threads that have ended, and that nobody joined or "
		    "detached: %s have ended",
		    fmt_size(&a, fact(r, FACT_STACKS_LEFT)),
		    fmt_count(&b, fact(r, FACT_THREADS_ENDED)));
		if (f->blame != CALLSITE_NONE) {
			str_printf(s, ", most of them started by ");
			add_blame(s, r);
		}
	} else if (f->blame == CALLSITE_NONE) {
		str_printf(s,
		    "%s of files in memory (a tmpfs, as /dev/shm) were written while it ran, and "
		    "not removed; hardly anybody else is in its cgroup",
		    fmt_size(&a, fact(r, FACT_FILES_LEFT)));
	} else {
		str_printf(s,
		    "%s of files in memory were closed and not removed, of %s each, most of them "
		    "made by ",
		    fmt_size(&a, fact(r, FACT_FILES_LEFT)), fmt_size(&b, fact(r, FACT_FILES_EACH)));
		add_blame(s, r);
	}
	ending_add(s, r, SAID_CAUSE);
}

/* Return what is blamed of the finding: the bytes of the blamed function, as the report's heading
 * says. */
static uint64_t blamed(const struct verdict_result *r)
{
	uint64_t bytes = num_less(r->verdict.blame.bytes, r->verdict.blame.refused);

	return bytes ? bytes : main_callsite(r)->survivors.bytes;
}

/* Do other lines of the blamed function hold more than a rest? */
static bool several_lines(const struct verdict_result *r)
{
	uint64_t bytes = blamed(r);

	return r->verdict.blame.file && r->verdict.blame.line &&
	       bytes - bytes / NEARLY_PART > main_callsite(r)->survivors.bytes;
}

/* ", 100 MiB of it in remember (chat.py:31)"; " in remember, 60.0 MiB of it at chat.py:31" */
static void add_leaked_in(struct str *s, const struct verdict_result *r)
{
	uint64_t all = r->ranking.list[0].finding.bytes, bytes = blamed(r);
	struct fmt a;

	if (all - all / NEARLY_PART > bytes)
		str_printf(s, ", %s of it", fmt_size(&a, bytes));
	str_puts(s, " in ");
	if (!several_lines(r)) {
		add_blame(s, r);
		return;
	}
	ending_callsite(s, r->verdict.blame.function, NULL, 0);
	str_printf(s, ", %s at %s:%u", fmt_size(&a, main_callsite(r)->survivors.bytes),
	    str_base_name(r->verdict.blame.file), r->verdict.blame.line);
}

/* ": 5,007 of its 5,412 blocks are still there, of 58.0 KiB each on average" */
static void add_survivors(struct str *s, const struct callsite *p, bool counted, bool one_line)
{
	const char *of = one_line ? " of that line" : "", *its = one_line ? "the" : "its";
	struct fmt a, b;

	fmt_count(&a, p->survivors.count);
	if (counted && p->survivors.count == p->facts.total_count)
		str_printf(s, ": all %s %s blocks%s are still there", its, a.text, of);
	else if (counted)
		str_printf(s, ": %s of %s %s blocks%s are still there", a.text, its,
		    fmt_count(&b, p->facts.total_count), of);
	else
		str_printf(s, ": %s blocks%s are still there", a.text, of);
	/* An arena is no block of the program's. */
	if (p->arena_share.any || !p->survivors.count)
		return;
	if (callsite_is_uniform(p) && p->facts.alike_size)
		str_printf(s, ", of %s each", fmt_size(&a, p->facts.alike_size));
	else
		str_printf(s, ", of %s each on average",
		    fmt_size(&a, p->survivors.bytes / p->survivors.count));
}

static void words_leak(struct str *s, const struct verdict_result *r)
{
	const struct callsite *p = main_callsite(r);
	uint64_t all = r->ranking.list[0].finding.bytes;
	/* Before a checkpoint only survivors were counted; of arenas only the remaining ones, not
	 * the objects that came and went inside. */
	bool counted = p &&
		       (!r->callsites->replaced_until_ns ||
			   p->facts.first_ns > r->callsites->replaced_until_ns) &&
		       !p->arena_share.any;
	const char *small = arena_blame_words(&r->verdict);
	struct fmt a;

	if (r->ranking.list[0].finding.form != FORM_USUAL) {
		words_left(s, r);
		return;
	}
	if (small) {
		str_printf(s, "%s leaked, most of it probably in ", fmt_size(&a, all));
		add_blame(s, r);
		str_puts(s, small);
		ending_add(s, r, SAID_CAUSE);
		return;
	}
	str_printf(s, "%s leaked", fmt_size(&a, all));
	add_leaked_in(s, r);
	add_survivors(s, p, counted, several_lines(r));
	ending_add(s, r, SAID_CAUSE);
}

static void put_graphs(struct str *s, const struct verdict_result *r, const char *how)
{
	const struct finding *f = &r->ranking.list[0].finding;
	struct fmt a, b, c;

	str_printf(s, "%s CUDA graphs, captured %s, take %s, most of it in ",
	    fmt_count(&a, fact(r, FACT_GRAPHS)), how, fmt_size(&b, f->bytes + f->slack_bytes));
	add_blame(s, r);
	if (f->slack_bytes)
		str_printf(
		    s, "; %s of it is free, but in their own pools", fmt_size(&c, f->slack_bytes));
	ending_add(s, r, SAID_CAUSE);
}

static void words_state_retention(struct str *s, const struct verdict_result *r)
{
	const struct callsite *p = main_callsite(r), *original;
	struct fmt a, b;

	if (r->ranking.list[0].finding.form == FORM_GRAPHS) {
		put_graphs(s, r, "when a shape came for the first time");
		return;
	}
	add_blame(s, r);
	str_printf(s, " keeps %s without a bound: %s ",
	    fmt_size(&b, r->ranking.list[0].finding.bytes), fmt_count(&a, p->survivors.count));
	if (p->relations.copies_of == CALLSITE_NONE) {
		str_puts(s, "blocks in a store");
	} else {
		original = &r->callsites->list[p->relations.copies_of];
		str_puts(s, p->size.grows ? "copies of what " : "blocks, in copies of what ");
		ending_callsite(s, original->function, original->file, original->line);
		str_puts(s, " holds");
	}
	if (p->size.grows)
		str_printf(s, ", %s each at first and %s now", fmt_size(&a, p->size.first),
		    fmt_size(&b, p->facts.largest));
	ending_add(s, r, SAID_CAUSE);
}

/* Do other functions than the blamed one hold any of what is claimed? */
static bool claims_elsewhere(const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;

	for (uint32_t i = 0; i < f->claim_count; i++)
		if (!str_same(r->callsites->list[f->claims[i].callsite].function,
			main_callsite(r)->function))
			return true;
	return false;
}

static void words_oversized_intermediate(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	const struct callsite *p = main_callsite(r);
	uint64_t own = num_less(r->verdict.blame.bytes, r->verdict.blame.refused);
	enum said said = SAID_CAUSE;
	struct fmt a, b;

	if (f->copied && claims_elsewhere(r)) {
		add_blame(s, r);
		str_printf(s,
		    " makes one large object, which is then copied: the copies take %s of the %s "
		    "in use",
		    fmt_size(&a, f->bytes + f->request_bytes),
		    fmt_size(&b, live(r) + f->request_bytes));
	} else if (p && (p->call.open == OPEN_CALL_YES || fact(r, FACT_CALL_BYTES))) {
		const struct symbol *of = p->call.function;
		bool inside = of && !str_same(of->function, r->verdict.blame.function);

		str_printf(s, "%s of the %s in use were allocated by one call of ",
		    fmt_size(&a, f->bytes), fmt_size(&b, live(r)));
		if (inside) {
			ending_callsite(s, of->function, of->file, of->line);
			str_puts(s, ", in ");
		}
		add_blame(s, r);
		str_puts(s, inside ? ", and it had not returned" : " that had not returned");
	} else if (f->request_bytes) {
		add_blame(s, r);
		fmt_size(&a, f->request_bytes);
		if (own > live(r) / NEARLY_PART) {
			str_printf(s, " asked for %s beside the %s that it held", a.text,
			    fmt_size(&b, own));
			if (own < live(r))
				add_others(s, r, own);
		} else {
			str_printf(s, " asked for %s at once", a.text);
			add_others(s, r, 0);
		}
		said = ending_said(r, f->request_bytes);
	} else if (f->bytes > live(r) - live(r) / NEARLY_PART) {
		add_blame(s, r);
		str_printf(s, " allocated %s, nearly all that was in use", fmt_size(&a, f->bytes));
	} else {
		add_blame(s, r);
		str_printf(s, " allocated %s of the %s in use", fmt_size(&a, f->bytes),
		    fmt_size(&b, live(r)));
	}
	ending_add(s, r, said);
}

static void words_oversized_model(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	uint64_t most = num_most(main_callsite(r)->facts.live_bytes,
	    num_least(f->bytes, num_less(r->verdict.blame.bytes, r->verdict.blame.refused)));
	struct fmt a, b;

	str_puts(s, r->failure.kind == FAILURE_KILLED ? "Most of the memory is the model's: "
						      : "The model does not fit: ");
	if (!f->bytes) {
		add_blame(s, r);
		str_printf(s, " asked for %s of it at once", fmt_size(&a, f->request_bytes));
		add_others(s, r, 0);
		ending_add(s, r, ending_said(r, f->request_bytes));
		return;
	}
	if (!f->late && most < f->bytes - f->bytes / 16)
		str_printf(
		    s, "%s were loaded, %s of it by ", fmt_size(&a, f->bytes), fmt_size(&b, most));
	else
		str_printf(s, "%s were loaded by ", fmt_size(&a, f->late ? most : f->bytes));
	add_blame(s, r);
	if (!f->late)
		str_puts(s, ", before the first request was served");
	else if (r->failure.kind != FAILURE_CUDA_OOM)
		str_puts(s, ", which had loaded before");
	if (f->late && live(r) > most)
		str_printf(s, ", beside %s already in use", fmt_size(&a, live(r) - most));
	ending_add(s, r, SAID_CAUSE);
}

static void words_batch_prealloc(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	const struct callsite *p = main_callsite(r);
	struct fmt a, b, c;

	if (f->form == FORM_GRAPHS) {
		put_graphs(s, r, "up front");
		return;
	}
	add_blame(s, r);
	if (f->request_bytes / 2 > p->facts.largest) {
		str_printf(
		    s, " asked for %s up front, in one block", fmt_size(&a, f->request_bytes));
		add_others(s, r, 0);
		ending_add(s, r, ending_said(r, f->request_bytes));
		return;
	}
	str_printf(s, " took %s up front, in ", fmt_size(&a, p->facts.live_bytes));
	if (f->form == FORM_STAIRS)
		str_printf(s, "%s blocks of up to %s, one larger than the other",
		    fmt_count(&b, p->facts.live_count), fmt_size(&c, p->facts.largest));
	else if (callsite_large_blocks(p) == 1)
		str_puts(s, "one block");
	else
		str_printf(s, "%s blocks of %s", fmt_count(&b, callsite_large_blocks(p)),
		    fmt_size(&c, p->facts.largest));
	str_puts(s, ", and has given none of it back");
	if (num_less(f->bytes, p->facts.live_bytes) > f->bytes / NEARLY_PART)
		str_printf(s, "; with the pools of other lines it is %s", fmt_size(&a, f->bytes));
	ending_add(s, r, SAID_CAUSE);
}

static void words_concurrency(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	const struct callsite *p = main_callsite(r);
	uint64_t held = fact(r, FACT_AT_ONCE_BYTES), stacks = fact(r, FACT_AT_ONCE_STACKS);
	uint64_t refused = fact(r, FACT_AT_ONCE_REFUSED);
	struct fmt a, b, c, d, e;

	switch (f->form) {
	case FORM_BACKLOG:
		str_printf(s, "%s wait in a queue, in %s blocks: ", fmt_size(&a, p->backlog.bytes),
		    fmt_count(&b, p->backlog.count));
		add_blame(s, r);
		str_puts(s, " produces them faster than they are processed");
		break;
	case FORM_STUCK:
		str_printf(s,
		    "%s %s do not end: the oldest is %s old, while %s others took %s. %s %s, most "
		    "of %s ",
		    fmt_count(&a, fact(r, FACT_STUCK)), requests_held_unit(&r->flow.held),
		    fmt_duration(&b, fact(r, FACT_STUCK_AGE)), fmt_count(&c, fact(r, FACT_ENDED)),
		    fmt_duration(&d, fact(r, FACT_ENDED_LIFE)),
		    stacks > held ? "Their stacks take" : "They hold",
		    fmt_size(&e, num_most(stacks, held)),
		    stacks > held ? "them started by" : "it in");
		add_blame(s, r);
		break;
	case FORM_WORKERS:
		str_printf(s,
		    "%s processes of one pool worked at once: this one held %s, most of it in ",
		    fmt_count(&a, f->workers), fmt_size(&b, live(r)));
		add_blame(s, r);
		str_printf(s, ", and the others %s", fmt_size(&c, f->other_bytes));
		break;
	case FORM_STACKS:
		str_printf(s, "%s threads were there at once, most of them started by ",
		    fmt_count(&a, fact(r, FACT_THREADS)));
		add_blame(s, r);
		str_printf(s, ": their stacks take %s", fmt_size(&b, fact(r, FACT_STACKS)));
		break;
	default:
		str_printf(s, "%s %s %s %s at once%s, up to %s each, most of it in ",
		    fmt_count(&a, fact(r, FACT_AT_ONCE)),
		    f->form == FORM_STREAMS ? "streams" : requests_held_unit(&r->flow.held),
		    refused ? "needed" : "held", fmt_size(&b, held),
		    refused ? ", the refused request included" : "",
		    fmt_size(&c, fact(r, FACT_AT_ONCE_LARGEST)));
		add_blame(s, r);
		break;
	}
	ending_add(s, r, SAID_CAUSE);
}

/* The allocator uses its holes for what fits into them, and keeps them from everybody else. */
static void add_holes(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	uint64_t largest = fact(r, FACT_HOLE_LARGEST);
	struct fmt a, b;

	str_printf(s, "%s are free inside the allocator, ", fmt_size(&a, f->slack_bytes));
	if (r->failure.requested_bytes > largest && largest)
		str_printf(
		    s, "but in holes of at most %s between live blocks", fmt_size(&b, largest));
	else
		str_puts(s, "which cannot give them back");
	str_printf(s, "; %s are in use", fmt_size(&a, fact(r, FACT_LIVE)));
}

static void words_fragmentation(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	bool device = r->failure.kind == FAILURE_CUDA_OOM;
	struct fmt a, b;

	fmt_size(&a, f->slack_bytes);
	if (device)
		str_printf(s, "%s are free, but in holes of at most %s between live blocks", a.text,
		    fmt_size(&b, fact(r, FACT_HOLE_LARGEST)));
	else if (fact(r, FACT_HOLE_ARENAS) > f->slack_bytes / 2)
		str_printf(s,
		    "%s are free in the interpreter's arenas, but a few objects in each arena keep "
		    "it from being given back; %s are in use",
		    a.text, fmt_size(&b, fact(r, FACT_LIVE)));
	else if (fact(r, FACT_HOLE_BYTES) > f->slack_bytes / 2)
		add_holes(s, r);
	else
		str_printf(s,
		    "The allocator holds %s of address space, most of it reserved to grow into; %s "
		    "are in use",
		    a.text, fmt_size(&b, fact(r, FACT_LIVE)));
	if (f->blame != CALLSITE_NONE) {
		str_puts(
		    s, device ? ", most of them next to blocks of " : ", most of it in blocks of ");
		add_blame(s, r);
	}
	ending_add(s, r, SAID_CAUSE);
}

static void words_external(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	struct fmt a, b, c;

	if (f->form == FORM_STACKS) {
		str_printf(s,
		    "Threads' stacks take %s of the limit of %s (%s), all else %s. The limit is "
		    "too low for this process, which does not grow",
		    fmt_size(&b, f->other_bytes), fmt_size(&a, r->failure.limit_bytes),
		    limit_kind_name(r->failure.limit), fmt_size(&c, live(r)));
	} else if (f->form == FORM_VARYING) {
		str_printf(s,
		    "The limit of %s (%s) is too low for this process, which does not grow: its "
		    "work takes %s beside what it keeps, now and then up to %s",
		    fmt_size(&a, r->failure.limit_bytes), limit_kind_name(r->failure.limit),
		    fmt_size(&b, fact(r, FACT_TEETH_USUAL)),
		    fmt_size(&c, fmax(fact(r, FACT_TEETH_HIGHEST), fact(r, FACT_TEETH_LAST))));
	} else if (f->steady) {
		str_printf(s,
		    "The limit of %s (%s) is too low for this process, which does not grow: %s "
		    "were in use",
		    fmt_size(&a, r->failure.limit_bytes), limit_kind_name(r->failure.limit),
		    fmt_size(&b, live(r)));
	} else if (r->volume) {
		str_printf(s, "Files that no recorded process has mapped take %s, this process %s",
		    fmt_size(&a, f->other_bytes), fmt_size(&b, volume_shares(r).own));
	} else {
		str_printf(s, "Other processes hold %s of the memory, this process %s",
		    fmt_size(&a, f->other_bytes), fmt_size(&b, live(r)));
	}
	ending_add(s, r, f->steady ? SAID_LIMIT : SAID_CAUSE);
}

static void words_healthy(struct str *s, const struct verdict_result *r)
{
	const struct ledger *l = &r->ledger;
	bool begun = !kill_with_memory_left(&r->kill), on_device = false;
	const struct process *process = r->tree.count ? &r->tree.processes[r->tree.subject] : NULL;
	bool detached = process && process->how == END_DETACHED;
	struct fmt a, b, c;

	if (detached)
		str_printf(s, "It was recorded for %s and went on. ",
		    fmt_duration(&a, num_ns(process->seconds)));
	str_puts(s, begun ? "Nothing ran out: " : "");
	for (size_t i = 0; i < r->devices.count; i++) {
		const struct ledger *of = &r->devices.list[i].ledger;

		if (of->limit == LIMIT_NONE)
			continue;
		str_printf(s, "%s of the %s of %s stayed free; ",
		    fmt_size(&b, ledger_get(of, LEDGER_FREE)), fmt_size(&a, of->limit_bytes),
		    r->devices.list[i].device);
		on_device = true;
	}
	str_printf(s, "%s %s were in use at once",
	    on_device ? "on the host at most"
	    : begun   ? "at most"
		      : "At most",
	    fmt_size(&a, r->model->peak.bytes));
	if (r->coverage.attach.any)
		str_printf(s, " of what came since the attach, beside %s from before",
		    fmt_size(&a, ledger_get(l, LEDGER_BEFORE)));
	if (l->limit != LIMIT_NONE)
		str_printf(s, ", and %s of the limit of %s (%s) stayed free",
		    fmt_size(&c, ledger_get(l, LEDGER_FREE)), fmt_size(&b, l->limit_bytes),
		    limit_kind_name(l->limit));
	str_putc(s, '.');
	if (r->kill.killed && !kill_with_memory_left(&r->kill))
		str_puts(s, r->kill.seen
				? " SIGKILL ended it, but not the kernel's OOM killer: its count "
				  "did not rise, and neither did the memory towards the end."
				: " The end was not recorded; the kernel counted no OOM kill.");
	if (r->recoveries.total)
		str_printf(s, " The program went on after %s refused request%s.",
		    fmt_count(&a, r->recoveries.total), r->recoveries.total == 1 ? "" : "s");
	for (size_t i = 0; i < r->ranking.count; i++) {
		const struct candidate *k = &r->ranking.list[i];
		const struct callsite *p;
		bool grew;

		if (k->finding.blame == CALLSITE_NONE || !k->admissible)
			continue;
		p = &r->callsites->list[k->finding.blame];
		/* For a process that was killed, kill.c has found no growth. */
		grew = (p->size.grows || p->survivors.stays) && !r->kill.killed;
		str_puts(s, grew ? " But " : " ");
		ending_callsite(s, p->function, p->file, p->line);
		fmt_size(&a, k->finding.bytes);
		if (grew)
			str_printf(s, " was still growing at the end: %s.", a.text);
		else
			str_printf(
			    s, " held %s of that (%s).", a.text, cause_name(k->finding.cause));
		if (grew && detached && r->kill.outlook.full_latest_ns)
			ending_outlook(s, r);
		else if (grew)
			str_puts(s, " A longer run shows whether that ends.");
		break;
	}
}

/* Add a kill that no shape explains. */
static void add_unexplained(struct str *s, const struct verdict_result *r)
{
	static const char *const counted[] = {
	    [KILL_COUNTER_ROSE] = "the kernel's OOM killer struck on this machine while it ran, "
				  "perhaps at another process",
	    [KILL_COUNTER_QUIET] = "the kernel counted no OOM kill",
	    [KILL_COUNTER_UNSEEN] = "the kernel's count of OOM kills was not recorded",
	};
	const struct kill_view *k = &r->kill;
	struct fmt a;

	if (kill_with_memory_left(k))
		str_puts(s, "The kernel counted no OOM kill");
	else
		str_printf(s, "%s; %s", k->seen ? "SIGKILL ended it" : "The end was not recorded",
		    counted[k->counter]);
	str_printf(s, ", and memory %s (at most %s were in use)",
	    k->rising ? "was still rising, in a shape that no cause explains"
		      : "did not rise towards the end",
	    fmt_size(&a, r->model->peak.bytes));
}

/* Does this explain too little to be worth a look? */
static bool is_small(const struct verdict_result *r, const struct finding *f)
{
	return f->blame != CALLSITE_NONE && f->bytes &&
	       f->bytes + f->request_bytes < live(r) / NEARLY_PART;
}

/* Add who allocated most of what is in use, where no cause is named. */
static void add_largest(struct str *s, const struct verdict_result *r)
{
	const struct callsite *most = NULL;
	struct fmt a, b;

	if (r->failure.kind == FAILURE_CUDA_OOM)
		return;
	for (uint32_t i = 0; i < r->callsites->count; i++)
		if (!most || r->callsites->list[i].facts.live_bytes > most->facts.live_bytes)
			most = &r->callsites->list[i];
	if (!most || !most->function || most->facts.live_bytes <= live(r) / 2)
		return;
	str_printf(s, "; %s of the %s in use were allocated by ",
	    fmt_size(&a, most->facts.live_bytes), fmt_size(&b, live(r)));
	ending_callsite(s, most->function, most->file, most->line);
}

/* Of a cause that only the beginning shows: whether it was one, nobody saw. */
static void add_since_attach(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	const struct callsite *p = main_callsite(r);
	uint64_t bytes = f->bytes ? f->bytes : f->request_bytes;
	struct fmt a;

	str_puts(s, "The evidence does not decide the cause: ");
	ending_callsite(s, p ? p->function : NULL, p ? p->file : NULL, p ? p->line : 0);
	str_printf(s,
	    " %s %s since the attach; only a recording from the start, by `whyoom run`, tells what "
	    "is put in place there from what leaks",
	    f->bytes ? "took and kept" : "asked for", fmt_size(&a, bytes));
}

static void words_unknown(struct str *s, const struct verdict_result *r)
{
	size_t named = 0;
	struct fmt a, t;

	if (r->coverage.gap && r->coverage.rights.stopped_ns) {
		str_printf(s, "The cause is not known: recording stopped after %s, because ",
		    fmt_duration(&t, r->coverage.rights.stopped_ns));
		trace_rights_why(&r->coverage.rights, s);
		str_puts(s, ".");
	} else if (r->coverage.gap)
		str_printf(s, "The cause is not known: %s.", r->coverage.gap);
	else if (r->kill.killed && r->failure.kind == FAILURE_NONE)
		add_unexplained(s, r);
	else if (r->kill.at_limit && r->failure.kind == FAILURE_NONE) {
		str_puts(s, "It ended with an error");
		ending_left(s, r);
		str_puts(s, ", but no refused request was recorded");
	} else if (decide_needs_beginning(r)) {
		add_since_attach(s, r);
		named = 2;
	} else if (coverage_mostly_before(r)) {
		str_puts(s, "The evidence does not decide the cause: ");
		ending_before(s, r);
		str_puts(s, "; attach earlier, or start it with `whyoom run`");
		named = 2;
	} else {
		str_puts(s, "The evidence does not decide the cause");
	}
	for (size_t i = 0; i < r->ranking.count && named < 2 && !r->coverage.gap; i++) {
		const struct candidate *k = &r->ranking.list[i];
		uint64_t bytes = k->finding.bytes + k->finding.request_bytes;

		if (k->finding.cause == CAUSE_HEALTHY || is_small(r, &k->finding))
			continue;
		str_printf(
		    s, "%s %s", named++ ? ", or" : ": perhaps", cause_name(k->finding.cause));
		if (k->finding.blame == CALLSITE_NONE)
			continue;
		str_puts(s, " in ");
		ending_callsite(s, r->callsites->list[k->finding.blame].function,
		    r->callsites->list[k->finding.blame].file,
		    r->callsites->list[k->finding.blame].line);
		if (bytes)
			str_printf(s, ", %s", fmt_size(&a, bytes));
	}
	if (!named && !r->coverage.gap)
		add_largest(s, r);
	if (!r->coverage.gap)
		ending_add(s, r, SAID_CAUSE);
}

/* A row without its function does not compile. */
static void (*const wordings[CAUSE_COUNT])(struct str *s, const struct verdict_result *r) = {
    [CAUSE_UNKNOWN] = words_unknown,
#define CAUSE(id, name, detect, class, wording, fixes, what_if, claim) [CAUSE_##id] = wording,
#include "knowledge/causes.def"
};

/* Does what this cause names grow on at its pace? One object or a model ends. */
static bool goes_on(enum cause cause)
{
	return cause != CAUSE_OVERSIZED_INTERMEDIATE && cause != CAUSE_OVERSIZED_MODEL &&
	       cause != CAUSE_BATCH_PREALLOC;
}

const char *words_summary(struct verdict_result *r)
{
	struct str s = {0};
	const char *text = NULL;

	if (kill_with_memory_left(&r->kill) && r->failure.kind != FAILURE_KILLED)
		ending_first(&s, r);
	wordings[r->verdict.cause](&s, r);
	if (r->failure.kind == FAILURE_KILLED && goes_on(r->verdict.cause))
		ending_outlook(&s, r);
	if (!s.failed)
		text = arena_copy(&r->arena, str_text(&s), s.length);
	str_free(&s);
	return text;
}
