/* words.c - see words.h. */
#include "verdict/wording/words.h"

#include <stdio.h>
#include <string.h>

#include "util/num.h"
#include "util/text/fmt.h"
#include "util/text/str.h"
#include "verdict/device/device.h"
#include "verdict/failure/kill.h"
#include "verdict/failure/volume.h"

/* From so much less on, other places are worth a mention. */
#define NEARLY_PART 10u

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void add_callsite(struct str *s, const char *function, const char *file, uint32_t line)
{
	if (function)
		fmt_function(s, function, "<..>");
	else
		str_puts(s, "an unknown place");
	if (file && line)
		str_printf(s, " (%s:%u)", base_name(file), line);
	else if (file)
		str_printf(s, " (%s)", base_name(file));
}

static void add_blame(struct str *s, const struct verdict_result *r)
{
	add_callsite(s, r->verdict.blame.function, r->verdict.blame.file, r->verdict.blame.line);
}

static const struct callsite *main_callsite(const struct verdict_result *r)
{
	return r->ranking.count && r->ranking.list[0].finding.blame != CALLSITE_NONE
		   ? &r->callsites->list[r->ranking.list[0].finding.blame]
		   : NULL;
}

/* What was refused inside the C library or the loader was not seen. */
static void add_left(struct str *s, const struct verdict_result *r)
{
	const struct failure_view *f = &r->failure;
	struct fmt a, b;

	str_printf(s, " while only %s of %s (%s) were left",
	    fmt_size(&a, f->limit_bytes - f->usage_bytes), fmt_size(&b, f->limit_bytes),
	    limit_kind_name(f->limit));
}

/* " on /dev/shm, which has 64 MiB (tmpfs size)" */
static void add_volume(struct str *s, const struct verdict_result *r)
{
	struct fmt a;

	str_printf(s, " on %s, which has %s (%s)",
	    r->volume->directory ? r->volume->directory : "a file system in memory",
	    fmt_size(&a, r->failure.limit_bytes), limit_kind_name(LIMIT_SHM));
}

/* "; the next request, of 3 GiB, did not fit under RLIMIT_AS of 1 GiB." */
static void add_end(struct str *s, const struct verdict_result *r)
{
	const struct failure_view *f = &r->failure;
	struct fmt a, b;

	switch (f->kind) {
	case FAILURE_HOST_ALLOC:
	case FAILURE_PYTHON_MEMORYERROR:
		if (r->kill.at_limit) {
			str_puts(s, ". It ended with an error");
			add_left(s, r);
			break;
		}
		str_printf(
		    s, ". The request that failed, for %s", fmt_size(&a, f->requested_bytes));
		if (r->tree.elsewhere.device)
			str_printf(s, " in process %u", f->pid);
		str_puts(s, ", did not fit");
		if (r->volume)
			add_volume(s, r);
		else if (f->limit == LIMIT_MAPPINGS)
			str_printf(s, ": the process has %s mappings, as many as %s allows",
			    fmt_count(&b, f->mappings), limit_kind_name(f->limit));
		else if (f->limit != LIMIT_UNKNOWN)
			str_printf(s, " under %s of %s", limit_kind_name(f->limit),
			    fmt_size(&b, f->limit_bytes));
		break;
	case FAILURE_OOM_KILL:
		if (f->limit == LIMIT_NONE)
			str_printf(
			    s, ". It was killed with %s resident", fmt_size(&a, f->usage_bytes));
		else
			str_printf(s, ". It was killed at the limit of %s (%s)",
			    fmt_size(&a, f->limit_bytes), limit_kind_name(f->limit));
		break;
	case FAILURE_BUS:
		if (r->tree.elsewhere.device)
			str_printf(s, ". Process %u", f->pid);
		else
			str_puts(s, ". It");
		str_puts(s, " was killed by SIGBUS because one more page did not fit");
		add_volume(s, r);
		break;
	case FAILURE_CUDA_OOM:
		str_printf(s, ". The block that failed, of %s, did not fit on the device of %s",
		    fmt_size(&a, f->requested_bytes), fmt_size(&b, f->limit_bytes));
		break;
	case FAILURE_KILLED: /* said before the cause */
	case FAILURE_NONE:
		break;
	}
	str_putc(s, '.');
}

static void prompt_growth(struct str *s, const struct verdict_result *r)
{
	const struct callsite *p = main_callsite(r);
	struct fmt a, b, c;
	uint64_t last = p->size.last;

	if (!p->size.grows &&
	    r->callsites->proportion.callsite == r->ranking.list[0].finding.blame) {
		add_blame(s, r);
		str_printf(s,
		    " allocates in proportion to the request's input: %s for the last one, of %s, "
		    "and %s for a typical one before it",
		    fmt_size(&a, r->callsites->proportion.target),
		    fmt_size(&b, r->callsites->proportion.input),
		    fmt_size(&c, r->callsites->proportion.typical));
		add_end(s, r);
		return;
	}
	if (!p->size.grows && p->buildup.grows) {
		add_blame(s, r);
		str_printf(s,
		    " holds more at once on every call, though it gives all of it back: %s at "
		    "first, "
		    "%s by the end",
		    fmt_size(&a, p->buildup.first), fmt_size(&b, p->buildup.now));
		add_end(s, r);
		return;
	}
	if (!p->size.grows) {
		add_blame(s, r);
		str_printf(s, " keeps %s, and each step goes through all that is kept again",
		    fmt_size(&a, r->ranking.list[0].finding.bytes));
		add_end(s, r);
		return;
	}
	if (p->facts.largest > last)
		last = p->facts.largest;
	add_blame(s, r);
	str_printf(s, " allocates larger blocks each time: %s at first, %s at block %s",
	    fmt_size(&a, p->size.start < p->size.first ? p->size.start : p->size.first),
	    fmt_size(&b, last), fmt_count(&c, p->facts.total_count));
	for (size_t i = 0; i < r->verdict.evidence_count; i++)
		if (strcmp(r->verdict.evidence[i].fact, "kept, and part of what grows") == 0)
			str_printf(s, ", built from %s that are kept",
			    fmt_size(&a, (uint64_t)r->verdict.evidence[i].value));
	add_end(s, r);
}

static void leak(struct str *s, const struct verdict_result *r)
{
	const struct callsite *p = main_callsite(r);
	uint64_t all = r->ranking.list[0].finding.bytes;
	struct fmt a, b, c;

	str_printf(s, "%s leaked in ", fmt_size(&c, all));
	add_blame(s, r);
	str_printf(s, ": %s", fmt_count(&a, p->survivors.count));
	/* Of those before a checkpoint, only who survived was counted; and arenas are counted where
	 * they remain, not what came and went inside. */
	if ((!r->callsites->replaced_until_ns ||
		p->facts.first_ns > r->callsites->replaced_until_ns) &&
	    !p->arena_share.any)
		str_printf(s, " of its %s", fmt_count(&b, p->facts.total_count));
	str_printf(s, " blocks were never released; %s",
	    callsite_is_uniform(p) ? "they all have the same size" : "their sizes do not grow");
	if (all - all / NEARLY_PART > p->survivors.bytes)
		str_printf(s, ". They are %s of it; the rest leaked at other lines",
		    fmt_size(&b, p->survivors.bytes));
	add_end(s, r);
}

static void state_retention(struct str *s, const struct verdict_result *r)
{
	const struct callsite *p = main_callsite(r), *state;
	struct fmt a, b;

	add_blame(s, r);
	str_printf(s, " keeps %s without a bound: %s ",
	    fmt_size(&b, r->ranking.list[0].finding.bytes), fmt_count(&a, p->survivors.count));
	if (p->relations.copies_of != CALLSITE_NONE && p->size.grows) {
		state = &r->callsites->list[p->relations.copies_of];
		str_puts(s, "copies of what ");
		add_callsite(s, state->function, state->file, state->line);
		str_puts(s, " holds");
	} else if (p->relations.copies_of != CALLSITE_NONE) {
		state = &r->callsites->list[p->relations.copies_of];
		str_puts(s, "blocks, in copies of what ");
		add_callsite(s, state->function, state->file, state->line);
		str_puts(s, " holds");
	} else {
		str_puts(s, "blocks in a store");
	}
	if (p->size.grows)
		str_printf(s, ", %s each at first and up to %s now", fmt_size(&a, p->size.first),
		    fmt_size(&b, p->facts.largest));
	add_end(s, r);
}

static void oversized(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	struct fmt a, b;

	if (f->copied) {
		add_blame(s, r);
		str_printf(s,
		    " makes one large object and copies it on the way: %s of the %s in use",
		    fmt_size(&a, f->bytes + f->request_bytes),
		    fmt_size(
			&b, r->callsites->live_bytes + r->callsites->map_bytes + f->request_bytes));
	} else if (f->blame != CALLSITE_NONE &&
		   r->callsites->list[f->blame].call.open != OPEN_CALL_NO) {
		const struct symbol *of = r->callsites->list[f->blame].call.function;
		bool inside = of && !str_same(of->function, r->verdict.blame.function);

		str_puts(s, "One call of ");
		if (inside)
			add_callsite(s, of->function, of->file, of->line);
		else
			add_blame(s, r);
		str_printf(s, " had allocated %s", fmt_size(&a, f->bytes));
		if (inside) {
			str_puts(s, " in ");
			add_blame(s, r);
		}
		str_printf(s, " of the %s in use, and had not returned yet",
		    fmt_size(&b, r->callsites->live_bytes + r->callsites->map_bytes));
	} else if (f->request_bytes) {
		add_blame(s, r);
		str_printf(s, " asked for %s at once, while everything else used %s",
		    fmt_size(&a, f->request_bytes),
		    fmt_size(&b, r->callsites->live_bytes + r->callsites->map_bytes));
	} else {
		add_blame(s, r);
		str_printf(s, " allocated most of what was in use: %s of %s",
		    fmt_size(&a, f->bytes),
		    fmt_size(&b, r->callsites->live_bytes + r->callsites->map_bytes));
	}
	add_end(s, r);
}

static uint64_t live(const struct verdict_result *r)
{
	return r->callsites->live_bytes + r->callsites->map_bytes;
}

static void oversized_model(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	uint64_t most = main_callsite(r)->facts.live_bytes;
	struct fmt a, b;

	str_puts(s, "The model does not fit: ");
	if (!f->bytes) {
		add_blame(s, r);
		str_printf(s, " asked for %s of it at once, while everything else used %s",
		    fmt_size(&a, f->request_bytes), fmt_size(&b, live(r)));
		add_end(s, r);
		return;
	}
	str_printf(s, "%s had been loaded", fmt_size(&a, f->late ? most : f->bytes));
	if (!f->late && most < f->bytes - f->bytes / 16)
		str_printf(s, ", %s of it", fmt_size(&a, most));
	str_puts(s, " by ");
	add_blame(s, r);
	if (f->late)
		str_printf(
		    s, ", beside %s that were there before", fmt_size(&a, num_less(live(r), most)));
	else
		str_puts(s, " before the first request was served");
	add_end(s, r);
}

static void batch_prealloc(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	const struct callsite *p = main_callsite(r);
	struct fmt a, b, c;

	add_blame(s, r);
	if (f->request_bytes / 2 > p->facts.largest) {
		str_printf(s, " asked for %s up front, in one block, while %s were in use",
		    fmt_size(&a, f->request_bytes),
		    fmt_size(&b, r->callsites->live_bytes + r->callsites->map_bytes));
		add_end(s, r);
		return;
	}
	str_printf(s, " took %s up front, in ", fmt_size(&a, p->facts.live_bytes));
	if (callsite_large_blocks(p) == 1)
		str_puts(s, "one block");
	else
		str_printf(s, "%s blocks of %s", fmt_count(&b, callsite_large_blocks(p)),
		    fmt_size(&c, p->facts.largest));
	if (num_less(f->bytes, p->facts.live_bytes) > f->bytes / NEARLY_PART)
		str_printf(s, " (%s with those of other lines)", fmt_size(&a, f->bytes));
	str_puts(s, ", and keeps them for all of the run");
	add_end(s, r);
}

static void concurrency(struct str *s, const struct verdict_result *r)
{
	const char *unit = requests_held_unit(&r->flow.held);
	const struct finding *f = &r->ranking.list[0].finding;
	struct fmt a, b, c;

	if (main_callsite(r)->backlog.grows) {
		str_printf(s,
		    "%s are queued in %s blocks: they are produced faster than they are processed, "
		    "by ",
		    fmt_size(&b, main_callsite(r)->backlog.bytes),
		    fmt_count(&a, main_callsite(r)->backlog.count));
		add_blame(s, r);
		add_end(s, r);
		return;
	}
	if (f->workers) {
		str_printf(s,
		    "%s processes of one pool worked at the same time: this one held %s, most of "
		    "it "
		    "in ",
		    fmt_count(&a, f->workers),
		    fmt_size(&b, r->callsites->live_bytes + r->callsites->map_bytes));
		add_blame(s, r);
		str_printf(s, ", the others %s", fmt_size(&c, f->other_bytes));
		add_end(s, r);
		return;
	}
	str_printf(s, "%s %s held %s at the same time, the largest of them %s: most of it in ",
	    fmt_count(&a, (uint64_t)f->evidence[0].value), unit,
	    fmt_size(&b, (uint64_t)f->evidence[1].value),
	    fmt_size(&c, (uint64_t)f->evidence[2].value));
	add_blame(s, r);
	add_end(s, r);
}

static bool lies_in_arenas(const struct finding *f)
{
	for (uint32_t i = 0; i < f->evidence_count; i++)
		if (strcmp(f->evidence[i].fact, FINDING_IN_ARENAS) == 0)
			return f->evidence[i].value > (double)f->slack_bytes / 2;
	return false;
}

static void fragmentation(struct str *s, const struct verdict_result *r)
{
	const struct finding *f = &r->ranking.list[0].finding;
	struct fmt a, b;

	if (r->failure.kind == FAILURE_CUDA_OOM)
		str_printf(s,
		    "%s are free, but in holes between live blocks; the largest hole is %s",
		    fmt_size(&a, f->slack_bytes), fmt_size(&b, (uint64_t)f->evidence[2].value));
	else if (lies_in_arenas(f))
		str_printf(s,
		    "%s are free in the interpreter's arenas, but each arena still holds a few "
		    "objects and cannot be given back; %s live",
		    fmt_size(&a, f->slack_bytes), fmt_size(&b, (uint64_t)f->evidence[3].value));
	else if (f->evidence[0].value > (double)f->slack_bytes / 2)
		str_printf(s,
		    "%s are free inside the allocator, which cannot give them back; %s live",
		    fmt_size(&a, f->slack_bytes), fmt_size(&b, (uint64_t)f->evidence[3].value));
	else
		str_printf(s,
		    "%s of address space are the allocator's own, most of it reserved to grow "
		    "into; "
		    "%s live",
		    fmt_size(&a, f->slack_bytes), fmt_size(&b, (uint64_t)f->evidence[3].value));
	if (f->blame != CALLSITE_NONE) {
		str_puts(s, r->failure.kind == FAILURE_CUDA_OOM ? ", most of them beside blocks of "
								: ", most of it in blocks of ");
		add_blame(s, r);
	}
	add_end(s, r);
}

static void external(struct str *s, const struct verdict_result *r)
{
	struct fmt a, b, c;

	if (strcmp(r->ranking.list[0].finding.fix, FIX_STACKS) == 0) {
		str_printf(s,
		    "The limit of %s (%s) is below what this process needs, which does not grow: "
		    "its threads' stacks take %s, and %s more are in use",
		    fmt_size(&a, r->failure.limit_bytes), limit_kind_name(r->failure.limit),
		    fmt_size(&b, r->ranking.list[0].finding.other_bytes), fmt_size(&c, live(r)));
		add_end(s, r);
		return;
	}
	if (r->ranking.list[0].finding.steady) {
		str_printf(s,
		    "The limit of %s (%s) is below what this process needs, which does "
		    "not grow: %s were in use",
		    fmt_size(&a, r->failure.limit_bytes), limit_kind_name(r->failure.limit),
		    fmt_size(&b, live(r)));
		add_end(s, r);
		return;
	}
	if (r->volume)
		str_printf(s, "Files that no recorded process has mapped take %s, this process %s",
		    fmt_size(&a, r->ranking.list[0].finding.other_bytes),
		    fmt_size(&b, volume_shares(r).own));
	else
		str_printf(s, "Other processes hold %s of the memory, this process %s",
		    fmt_size(&a, r->ranking.list[0].finding.other_bytes), fmt_size(&b, live(r)));
	add_end(s, r);
}

static uint64_t free_of(const struct ledger *l)
{
	for (uint32_t i = 0; i < l->row_count; i++)
		if (strcmp(l->rows[i].class, "free") == 0)
			return l->rows[i].bytes;
	return 0;
}

static void healthy(struct str *s, const struct verdict_result *r)
{
	const struct ledger *l = &r->ledger;
	struct fmt a, b, c;

	str_printf(s, "Nothing ran out: at most %s were in use at once",
	    fmt_size(&a, r->model->peak.bytes));
	if (l->limit != LIMIT_NONE)
		str_printf(s, ", and %s of the limit of %s (%s) stayed free",
		    fmt_size(&c, free_of(l)), fmt_size(&b, l->limit_bytes),
		    limit_kind_name(l->limit));
	str_putc(s, '.');
	for (size_t i = 0; i < r->devices.count; i++)
		if (r->devices.list[i].ledger.limit != LIMIT_NONE)
			str_printf(s, " %s of the %s of %s stayed free.",
			    fmt_size(&b, free_of(&r->devices.list[i].ledger)),
			    fmt_size(&a, r->devices.list[i].ledger.limit_bytes),
			    r->devices.list[i].device);
	if (r->kill.killed && !kill_with_memory_left(&r->kill))
		str_puts(s, r->kill.seen ? " It was killed by SIGKILL, but not by the kernel's OOM "
					   "killer, whose count did not rise, and its memory did "
					   "not rise towards the end."
					 : " How it ended was not seen; the kernel's count of OOM "
					   "kills did not rise.");
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
		/* Of one that was killed it was looked at: it did not. */
		grew = (p->size.grows || p->survivors.stays) && !r->kill.killed;
		str_puts(s, grew ? " But " : " ");
		add_callsite(s, p->function, p->file, p->line);
		str_printf(s,
		    grew ? " was still growing at the end: %s (%s)." : " held %s of that (%s).",
		    fmt_size(&a, k->finding.bytes), k->finding.cause);
		break;
	}
}

/* A kill that nothing explains. */
static void unexplained(struct str *s, const struct verdict_result *r)
{
	const struct kill_view *k = &r->kill;
	struct fmt a;

	if (kill_with_memory_left(k)) {
		str_puts(s, "The kernel's count of OOM kills did not rise");
	} else {
		str_puts(s, k->seen ? "It was killed by SIGKILL; " : "How it ended was not seen; ");
		str_puts(s, k->counter == KILL_COUNTER_ROSE
				? "the kernel's OOM killer struck on this machine while it ran, "
				  "perhaps at another process"
			    : k->counter == KILL_COUNTER_QUIET
				? "the kernel's count of OOM kills did not rise"
				: "nobody watched whether the kernel's OOM killer struck");
	}
	str_printf(s, ", and its memory %s (at most %s lived at once)",
	    k->rising ? "was still rising, though in no known shape"
		      : "did not rise towards the end",
	    fmt_size(&a, r->model->peak.bytes));
}

/* What ended it was not memory: before all else. */
static void add_kill(struct str *s, const struct verdict_result *r)
{
	struct fmt a;

	str_printf(s, "%s; memory had not run out (%s free). ",
	    r->kill.seen ? "Killed by SIGKILL" : "Its end was not seen",
	    fmt_size(&a, r->kill.outlook.left_bytes));
	if (r->failure.kind == FAILURE_KILLED)
		str_puts(s, "It was growing: ");
}

static const char *first_limit(const struct outlook *o)
{
	return o->first == LIMIT_SYSTEM	  ? "the machine's memory"
	       : o->first == LIMIT_CGROUP ? "the cgroup's memory"
					  : limit_kind_name(o->first);
}

/* When that would have been a failure for want of memory. */
static void add_outlook(struct str *s, const struct verdict_result *r)
{
	const struct outlook *o = &r->kill.outlook;
	struct fmt a, b, c;

	if (!o->full_latest_ns)
		return;
	str_printf(s, " At this pace %s of %s would have been full ", first_limit(o),
	    fmt_size(&a, o->first_bytes));
	if (o->full_latest_ns - o->full_soonest_ns < o->full_latest_ns / 10)
		str_printf(s, "about %s later.", fmt_duration(&b, o->full_latest_ns));
	else
		str_printf(s, "%s to %s later.", fmt_duration(&b, o->full_soonest_ns),
		    fmt_duration(&c, o->full_latest_ns));
}

static void unknown(struct str *s, const struct verdict_result *r)
{
	size_t named = 0;
	struct fmt t;

	if (r->coverage.gap && r->coverage.rights.stopped_ns) {
		str_printf(s, "The cause cannot be told: not recorded since %s, as ",
		    fmt_duration(&t, r->coverage.rights.stopped_ns));
		trace_rights_why(&r->coverage.rights, s);
		str_puts(s, ".");
	} else if (r->coverage.gap)
		str_printf(s, "The cause cannot be told: %s.", r->coverage.gap);
	else if (r->kill.killed && r->failure.kind == FAILURE_NONE)
		unexplained(s, r);
	else if (r->kill.at_limit && r->failure.kind == FAILURE_NONE) {
		str_puts(s, "It ended with an error");
		add_left(s, r);
		str_puts(s, ", but no refused request was recorded");
	} else {
		str_puts(s, "The evidence does not decide");
	}
	for (size_t i = 0; i < r->ranking.count && named < 2 && !r->coverage.gap; i++) {
		const struct candidate *k = &r->ranking.list[i];

		if (strcmp(k->finding.cause, "healthy") == 0 || k->finding.blame == CALLSITE_NONE)
			continue;
		str_printf(s, "%s %s in ", named ? ", or" : ": perhaps", k->finding.cause);
		add_callsite(s, r->callsites->list[k->finding.blame].function,
		    r->callsites->list[k->finding.blame].file,
		    r->callsites->list[k->finding.blame].line);
		named++;
	}
	if (!r->coverage.gap)
		add_end(s, r);
}

const char *words_summary(struct verdict_result *r)
{
	static const struct {
		const char *cause;
		void (*say)(struct str *s, const struct verdict_result *r);
	} words[] = {
	    {"prompt-growth", prompt_growth},
	    {"leak", leak},
	    {"state-retention", state_retention},
	    {"oversized-intermediate", oversized},
	    {"oversized-model", oversized_model},
	    {"batch-prealloc", batch_prealloc},
	    {"concurrency", concurrency},
	    {"fragmentation", fragmentation},
	    {"external", external},
	    {"healthy", healthy},
	};
	void (*say)(struct str * s, const struct verdict_result *r) = unknown;
	struct str s = {0};
	const char *text = NULL;

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(words[i].cause, r->verdict.cause) == 0)
			say = words[i].say;
	if (kill_with_memory_left(&r->kill))
		add_kill(&s, r);
	say(&s, r);
	if (r->failure.kind == FAILURE_KILLED)
		add_outlook(&s, r);
	if (!s.failed)
		text = arena_copy(&r->arena, str_text(&s), s.length);
	str_free(&s);
	return text;
}
