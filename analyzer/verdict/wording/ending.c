#include "verdict/wording/ending.h"

#include "util/num.h"
#include "util/text/fmt.h"
#include "util/text/str.h"
#include "verdict/failure/volume.h"
#include "verdict/ledger/ledger.h"

void ending_callsite(struct str *s, const char *function, const char *file, uint32_t line)
{
	if (function)
		fmt_function(s, function, "<..>");
	else
		str_puts(s, "an unknown place");
	if (file && line)
		str_printf(s, " (%s:%u)", str_base_name(file), line);
	else if (file)
		str_printf(s, " (%s)", str_base_name(file));
}

void ending_left(struct str *s, const struct verdict_result *r)
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

/* A large request of another function than the blamed one: " by plan_graph (graph.c:12)". */
static void add_requester(struct str *s, const struct verdict_result *r)
{
	const struct callsite *by = r->callsites->failed == CALLSITE_NONE
					? NULL
					: &r->callsites->list[r->callsites->failed];

	if (!by || !by->function || !r->verdict.blame.function ||
	    r->failure.requested_bytes < r->failure.limit_bytes / NEARLY_PART ||
	    str_same(by->function, r->verdict.blame.function))
		return;
	str_puts(s, " by ");
	ending_callsite(s, by->function, by->file, by->line);
}

/* ". A request for 3.00 GiB then failed at the limit of 1.00 GiB (RLIMIT_AS)" */
static void add_refusal(struct str *s, const struct verdict_result *r, enum said said)
{
	const struct failure_view *f = &r->failure;
	bool bytes = f->limit != LIMIT_UNKNOWN && f->limit != LIMIT_MAPPINGS && !r->volume;
	struct fmt a;

	if (said == SAID_REQUEST && bytes) {
		str_printf(s, ". The limit is %s (%s)", fmt_size(&a, f->limit_bytes),
		    limit_kind_name(f->limit));
		return;
	}
	str_printf(s, ". A request for %s", fmt_size(&a, f->requested_bytes));
	if (r->tree.elsewhere.device)
		str_printf(s, " in process %u", f->pid);
	else
		add_requester(s, r);
	str_puts(s, " then failed");
	if (r->volume)
		add_volume(s, r);
	else if (f->limit == LIMIT_MAPPINGS)
		str_printf(s, ": the process has %s mappings, as many as %s allows",
		    fmt_count(&a, f->mappings), limit_kind_name(f->limit));
	else if (bytes && said != SAID_LIMIT)
		str_printf(s, " at the limit of %s (%s)", fmt_size(&a, f->limit_bytes),
		    limit_kind_name(f->limit));
}

/* What a device, or PyTorch's share of it, refused. */
static void add_device_refusal(struct str *s, const struct verdict_result *r, enum said said)
{
	const struct failure_view *f = &r->failure;
	bool share = f->limit == LIMIT_TORCH;
	struct fmt a, b;

	fmt_size(&b, f->limit_bytes);
	if (said == SAID_REQUEST) {
		str_printf(s, share ? ". The limit is %s" : ". The device has %s", b.text);
	} else {
		str_printf(s, ". A request for %s", fmt_size(&a, f->requested_bytes));
		add_requester(s, r);
		str_printf(s,
		    share ? " then failed at the limit of %s" : " then failed on the device of %s",
		    b.text);
	}
	if (share)
		str_printf(s, " (%s)", limit_kind_name(f->limit));
}

static void add_killed_at(struct str *s, const struct verdict_result *r)
{
	const struct failure_view *f = &r->failure;
	uint64_t live = r->callsites->live_bytes + r->callsites->map_bytes;
	struct fmt a, b;

	if (f->swap_bytes)
		str_printf(s, ". It was killed when %s of memory (%s) and %s of swap were full",
		    fmt_size(&a, f->limit_bytes - f->swap_bytes), limit_kind_name(f->limit),
		    fmt_size(&b, f->swap_bytes));
	else
		str_printf(s, ". It was killed at the limit of %s (%s)",
		    fmt_size(&a, f->limit_bytes), limit_kind_name(f->limit));
	/* Only pages that were touched count. */
	if (limit_is_cgroup(f->limit) && live > f->limit_bytes + f->limit_bytes / NEARLY_PART)
		str_puts(s, ", before it had touched all that it had allocated");
}

void ending_before(struct str *s, const struct verdict_result *r)
{
	const struct ledger *l = &r->ledger;
	struct fmt a, b;

	str_printf(s, "%s of the ", fmt_size(&a, ledger_get(l, LEDGER_BEFORE)));
	if (l->limit == LIMIT_DEVICE)
		str_printf(s, "%s of %s", fmt_size(&b, l->limit_bytes), l->space);
	else if (l->limit == LIMIT_NONE)
		str_printf(s, "%s in use", fmt_size(&b, l->limit_bytes));
	else
		str_printf(
		    s, "limit of %s (%s)", fmt_size(&b, l->limit_bytes), limit_kind_name(l->limit));
	str_puts(s, " were there before whyoom came");
}

void ending_add(struct str *s, const struct verdict_result *r, enum said said)
{
	const struct failure_view *f = &r->failure;
	struct fmt a, b;

	switch (f->kind) {
	case FAILURE_HOST_ALLOC:
	case FAILURE_PYTHON_MEMORYERROR:
		if (r->kill.at_limit) {
			str_puts(s, ". It ended with an error");
			ending_left(s, r);
		} else {
			add_refusal(s, r, said);
		}
		break;
	case FAILURE_OOM_KILL:
		if (f->limit == LIMIT_NONE)
			str_printf(
			    s, ". It was killed with %s resident", fmt_size(&a, f->usage_bytes));
		else if (said == SAID_LIMIT)
			str_puts(s, ". It was killed at that limit");
		else
			add_killed_at(s, r);
		break;
	case FAILURE_STALLED:
		str_printf(s, ". The kernel held it back at the limit of %s (%s)",
		    fmt_size(&a, f->limit_bytes), limit_kind_name(f->limit));
		if (f->held_back)
			str_printf(s, " %s times", fmt_count(&b, f->held_back));
		str_puts(s, ", where it stands still rather than dies");
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
		add_device_refusal(s, r, said);
		break;
	case FAILURE_KILLED:
		str_printf(s,
		    r->kill.seen ? ". Memory had not run out: SIGKILL ended it with %s free"
				 : ". Memory had not run out: %s were free where its record ends",
		    fmt_size(&a, r->kill.outlook.left_bytes));
		break;
	case FAILURE_NONE:
		break;
	}
	str_putc(s, '.');
}

enum said ending_said(const struct verdict_result *r, uint64_t bytes)
{
	return bytes == r->failure.requested_bytes ? SAID_REQUEST : SAID_CAUSE;
}

void ending_first(struct str *s, const struct verdict_result *r)
{
	struct fmt a;

	str_printf(s,
	    r->kill.seen ? "SIGKILL ended it with %s free: memory had not run out. "
			 : "Its end was not recorded; with %s free, memory had not run out. ",
	    fmt_size(&a, r->kill.outlook.left_bytes));
}

static const char *first_limit(const struct outlook *o)
{
	return o->first == LIMIT_SYSTEM	  ? "the machine's memory"
	       : o->first == LIMIT_CGROUP ? "the cgroup's memory"
					  : limit_kind_name(o->first);
}

void ending_outlook(struct str *s, const struct verdict_result *r)
{
	const struct outlook *o = &r->kill.outlook;
	struct fmt a, b, c;

	if (!o->full_latest_ns)
		return;
	if (!r->kill.killed)
		str_printf(s, " At this pace %s of %s will be full ", first_limit(o),
		    fmt_size(&a, o->first_bytes));
	else
		str_printf(s, " At this pace %s of %s would have been full ", first_limit(o),
		    fmt_size(&a, o->first_bytes));
	if (o->full_latest_ns - o->full_soonest_ns < o->full_latest_ns / 10)
		str_printf(s, "about %s later.", fmt_duration(&b, o->full_latest_ns));
	else
		str_printf(s, "%s to %s later.", fmt_duration(&b, o->full_soonest_ns),
		    fmt_duration(&c, o->full_latest_ns));
}
