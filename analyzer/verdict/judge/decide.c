#include "verdict/judge/decide.h"

#include <math.h>
#include <string.h>

#include "util/text/str.h"
#include "util/tuned.h"
#include "verdict/device/device.h"
#include "verdict/failure/kill.h"
#include "verdict/framework/framework_frames.h"
#include "verdict/judge/coverage.h"
#include "verdict/judge/rank.h"
#include "verdict/ledger/ledger.h"

TUNED(double, KILL_GREW_SURE, 0.95,
    "growth alone says that a kill was for want of memory: nearly sure, but somebody else may have "
    "sent it");
TUNED(double, KILL_FLAT_SURE, 0.85,
    "the counters alone say that it was not: a daemon kills without counting");
TUNED(
    double, LOST_WEIGHT, 0.5, "when all events are lost, a clear shape is still as likely as not");
TUNED(double, BEFORE_WEIGHT, 0.2,
    "what grew since an attach filled the rest: four times in five it made the other, too");
TUNED(uint64_t, ARENAS_PART, 10, "less in an interpreter's arenas decides no cause");
TUNED(double, RIVAL_PART, 2, "a rival of less than half the score is no rival");

/* Remove the compiler's tags: it says "render[abi:cxx11]", and the source says "render". */
static const char *without_tags(struct verdict_result *r, const char *function)
{
	const char *tag = strstr(function, "[abi:"), *end = tag ? strchr(tag, ']') : NULL;
	char *copy;

	if (!end)
		return function;
	copy = arena_copy(&r->arena, function, strlen(function));
	if (!copy)
		return function;
	memmove(copy + (tag - function), end + 1, strlen(end + 1) + 1);
	return without_tags(r, copy);
}

void decide_blame(struct verdict_result *r, size_t i)
{
	const struct symbol *s = &r->verdict.blame.stack.symbols[i];

	r->verdict.blame.function = without_tags(r, s->function);
	r->verdict.blame.file = s->file;
	r->verdict.blame.line = s->line;
	r->verdict.blame.frame = i;
}

static enum role role_at(struct verdict_result *r, size_t i)
{
	return framework_frame(r->frameworks.frames, &r->verdict.blame.stack.symbols[i]).role;
}

/* Where a framework's own allocator is blamed, blame the first frame around it that has a role. */
static void leave_allocator(struct verdict_result *r)
{
	size_t i = r->verdict.blame.frame;

	if (role_at(r, i) != ROLE_ALLOCATOR)
		return;
	while (i-- > 0) {
		enum role role = role_at(r, i);

		if (role == ROLE_NONE || role == ROLE_ALLOCATOR)
			continue;
		decide_blame(r, i);
		return;
	}
}

/* True unless the name starts with one underscore: by Python's convention it is private. */
static bool is_public(const char *function)
{
	const char *dot = strrchr(function, '.'), *name = dot ? dot + 1 : function;

	return name[0] != '<' && (name[0] != '_' || name[1] == '_');
}

/* Blame the store's frame that keeps the bytes: inside the user's call, or around the store's
 * function that writes. */
static void enter_store(struct verdict_result *r, enum owner owner)
{
	size_t i = r->verdict.blame.stack.count;
	size_t least = owner == OWNER_USER ? r->verdict.blame.frame + 1 : 0;

	while (i-- > least)
		if (role_is_store(role_at(r, i)) && r->verdict.blame.stack.symbols[i].python) {
			decide_blame(r, i);
			return;
		}
}

/* Blame a store by its public name: "InMemorySaver.put", not the function that writes. */
static void name_store(struct verdict_result *r)
{
	size_t i = r->verdict.blame.frame, best = i;
	enum role role = role_at(r, i);

	if (!role_is_store(role) && role != ROLE_HISTORY)
		return;
	while (i-- > 0) {
		const struct symbol *s = &r->verdict.blame.stack.symbols[i];

		if (!s->python)
			continue;
		if (role_at(r, i) != role)
			break;
		if (s->function && is_public(s->function))
			best = i;
	}
	if (best != r->verdict.blame.frame)
		decide_blame(r, best);
}

/* Return the refused request's stack if that is most of the bytes, or else the call site's. */
static struct stack_view stack_of(const struct verdict_result *r, const struct finding *f)
{
	const struct feed *feed = &r->model->feed;

	if (f->request_bytes > f->bytes && f->blame == r->callsites->failed &&
	    r->failure.stack.count)
		return r->failure.stack;
	return stack_view_of(feed, r->callsites->list[f->blame].stack);
}

/* Return whether the refused request came from the blamed function, or through it. Where nothing
 * says from where it came, it counts as the blamed function's. */
static bool was_refused(const struct verdict_result *r, const struct callsite *main)
{
	const struct stack_view *stack = &r->failure.stack;

	if (r->callsites->failed == CALLSITE_NONE || !stack->count)
		return true;
	for (size_t i = 0; i < stack->count; i++)
		if (str_same(stack->symbols[i].function, main->function) &&
		    str_same(stack->symbols[i].file, main->file))
			return true;
	return false;
}

static void blame(struct verdict_result *r, const struct finding *f)
{
	const struct callsites *callsites = r->callsites;
	const struct callsite *main;
	double variance = 0;
	uint64_t bytes = 0;

	if (f->blame == CALLSITE_NONE)
		return;
	main = &callsites->list[f->blame];
	r->verdict.blame.function = without_tags(r, main->function);
	r->verdict.blame.file = main->file;
	r->verdict.blame.line = main->line;
	for (uint32_t i = 0; i < f->claim_count; i++) {
		const struct callsite *p = &callsites->list[f->claims[i].callsite];

		if (str_same(p->function, main->function) && str_same(p->file, main->file)) {
			bytes += f->claims[i].bytes;
			variance += p->facts.live_variance;
		}
	}
	r->verdict.blame.refused = was_refused(r, main) ? f->request_bytes : 0;
	r->verdict.blame.bytes = bytes + r->verdict.blame.refused;
	r->verdict.blame.error = sqrt(fmax(variance, 0));
	r->verdict.blame.stack = stack_of(r, f);
	for (size_t i = r->verdict.blame.stack.count; i-- > 0;) {
		const struct symbol *s = &r->verdict.blame.stack.symbols[i];

		if (s->function && strcmp(s->function, main->function) == 0 &&
		    s->line == main->line) {
			r->verdict.blame.frame = i;
			if (r->frameworks.frames) {
				leave_allocator(r);
				if (f->cause == CAUSE_STATE_RETENTION)
					enter_store(r, main->owner);
				name_store(r);
			}
			break;
		}
	}
}

static const char *what_next(const struct verdict_result *r)
{
	if (coverage_mostly_before(r) || decide_needs_beginning(r))
		return "Attach earlier, or start it with `whyoom run`: what was allocated before "
		       "an attach has no call site.";
	if (r->failure.kind == FAILURE_NONE && r->kill.counter == KILL_COUNTER_ROSE)
		return "The kernel's OOM killer struck on this machine while it ran: `dmesg` or "
		       "`journalctl -k` names its victim.";
	if (r->failure.kind == FAILURE_NONE && kill_with_memory_left(&r->kill))
		return "Memory did not end it: look for who sent SIGKILL (a timeout, a service "
		       "manager, a person).";
	if (r->failure.kind == FAILURE_NONE && r->kill.counter == KILL_COUNTER_QUIET)
		return "Let it run longer before it is killed (a higher limit), so that what grows "
		       "is told from what is only large; the logs of earlyoom, systemd-oomd or the "
		       "kubelet say whether one of them killed it.";
	if (r->failure.kind == FAILURE_NONE)
		return "Run it under `whyoom run`, so that its end and its memory are seen from "
		       "outside.";
	if (r->coverage.checkpoint.until_ns)
		return r->coverage.disk_bound
			   ? "Give the traces more room (--max-disk): of the time before the "
			     "checkpoint only what still lived at its end is known one by one, and "
			     "not what was exchanged there."
			   : "Give the trace more room (--max-trace): of the time before the "
			     "checkpoint only what still lived at its end is known one by one, and "
			     "not what was exchanged there.";
	if (r->failure.limit == LIMIT_UNKNOWN || r->failure.limit == LIMIT_NONE)
		return "Run it under `whyoom run` with the limit that strikes, until it fails "
		       "again; a longer run shows more of the growth.";
	if (r->failure.limit == LIMIT_SHM)
		return "Give it a larger file system (docker run --shm-size), so that it runs "
		       "longer before it fails, and see with `df` and `ls -l` who fills it.";
	if (r->failure.kind == FAILURE_CUDA_OOM)
		return "Run it once on a larger device, if only a simulated one (`whyoom run "
		       "--simgpu SIZE`): if it levels off, the device is too small for it; if it "
		       "grows on, the report then tells what grows from what is only large.";
	if (ledger_get(&r->ledger, LEDGER_ARENAS) > r->failure.limit_bytes / ARENAS_PART)
		return "Run it once with a higher limit and `whyoom run --python-objects`: if it "
		       "levels off, the limit was too low; if it grows on, the report then tells "
		       "what grows from what is only large, small objects too.";
	return "Run it once with a higher limit: if it levels off, the limit was too low; if it "
	       "grows on, the report then tells what grows from what is only large.";
}

void decide_fact(struct verdict *v, enum fact fact, double value)
{
	if (v->evidence_count < EVIDENCE_MAX)
		v->evidence[v->evidence_count++] = (struct evidence){fact, value};
}

static void kill_evidence(struct verdict_result *r)
{
	const struct kill_view *k = &r->kill;
	const struct {
		enum fact fact;
		uint64_t value;
		bool known;
	} facts[] = {
	    {FACT_KILL_LIVE_EARLY, k->live_early, true},
	    {FACT_KILL_LIVE_LATE, k->live_late, true},
	    {FACT_KILL_RSS_EARLY, k->rss_early, k->rss_early > 0},
	    {FACT_KILL_RSS_LATE, k->rss_late, k->rss_early > 0},
	    {FACT_KILL_FREE, k->outlook.left_bytes, k->outlook.known},
	    {FACT_KILL_SOONEST, k->outlook.full_soonest_ns, k->outlook.full_latest_ns > 0},
	    {FACT_KILL_LATEST, k->outlook.full_latest_ns, k->outlook.full_latest_ns > 0},
	    {FACT_KILL_COUNTED, 0, k->counter == KILL_COUNTER_QUIET},
	};

	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (facts[i].known)
			decide_fact(&r->verdict, facts[i].fact, (double)facts[i].value);
}

/* True if the process did not end by itself, though nothing is known to have run out. */
static bool unexplained(const struct verdict_result *r, bool failed)
{
	return !failed &&
	       (r->kill.at_limit ||
		   (r->kill.killed && (r->kill.rising || r->kill.counter != KILL_COUNTER_QUIET)));
}

bool decide_needs_beginning(const struct verdict_result *r)
{
	const struct finding *f = r->ranking.count ? &r->ranking.list[0].finding : NULL;

	return r->coverage.attach.any && f &&
	       (f->cause == CAUSE_BATCH_PREALLOC || f->cause == CAUSE_OVERSIZED_MODEL);
}

void decide(struct verdict_result *r, bool failed, const char *next)
{
	struct verdict *v = &r->verdict;
	const struct candidate *best = r->ranking.count ? &r->ranking.list[0] : NULL;
	const struct candidate *second = r->ranking.count > 1 ? &r->ranking.list[1] : NULL;
	double sure = best ? best->confidence : 0;

	/* Losses blur a shape, but do not create one. */
	if (r->coverage.lost_events && best)
		sure *= 1 - LOST_WEIGHT * (double)r->coverage.lost_events /
				(double)(r->model->run.events + r->coverage.lost_events);
	/* The whole damaged share of the trace may support another cause. */
	sure *= 1 - r->tree.damage.share;
	v->cause = CAUSE_UNKNOWN;
	v->confidence = 0;
	v->next = next ? next : what_next(r);
	if (best && !(r->coverage.gap && !(failed && r->coverage.blurred)) &&
	    sure >= RANK_CONFIDENCE_MIN && best->admissible && !unexplained(r, failed) &&
	    !decide_needs_beginning(r)) {
		v->cause = best->finding.cause;
		v->confidence = sure;
		v->next = NULL;
		blame(r, &best->finding);
	} else if (failed) {
		second = best;
	}
	/* What was there before may have grown for another reason. */
	if (r->coverage.attach.any && r->ledger.limit_bytes)
		v->confidence *=
		    1 - BEFORE_WEIGHT * fmin(1, (double)ledger_get(&r->ledger, LEDGER_BEFORE) /
						    (double)r->ledger.limit_bytes);
	if (best && (v->confidence > 0 || failed)) {
		memcpy(v->evidence, best->finding.evidence, sizeof(v->evidence));
		v->evidence_count = best->finding.evidence_count;
	}
	if (r->kill.killed) {
		kill_evidence(r);
		v->confidence *= !failed			  ? KILL_FLAT_SURE
				 : r->failure.limit == LIMIT_NONE ? KILL_GREW_SURE
								  : 1;
	}
	/* Only a known store shows that bytes are kept on purpose. A cause that would not have
	 * prevented the failure, or that is far behind, is no rival. */
	if (v->cause == CAUSE_LEAK &&
	    !(second && second->admissible && second->score >= best->score / RIVAL_PART)) {
		v->runner_up = CAUSE_STATE_RETENTION;
		v->runner_up_confidence = (1 - v->confidence) / 2;
	} else if (second && second->score > 0) {
		v->runner_up = second->finding.cause;
		v->runner_up_confidence =
		    fmin(second->confidence, v->confidence > 0 ? 1 - v->confidence : 1);
	}
}

static void add_what_if(struct verdict_result *r, const char *change, bool fits, double headroom)
{
	if (r->what_ifs.count < WHAT_IF_MAX && change)
		r->what_ifs.list[r->what_ifs.count++] =
		    (struct what_if){change, fits, (int64_t)headroom};
}

void decide_what_ifs(struct verdict_result *r)
{
	double room = (double)r->failure.limit_bytes - (double)r->failure.usage_bytes -
		      (double)r->failure.requested_bytes;

	if (r->failure.kind == FAILURE_NONE)
		return;
	for (size_t i = 0; i < r->ranking.count; i++)
		add_what_if(r, cause_what_if(r->ranking.list[i].finding.cause),
		    r->ranking.list[i].fits, (double)r->ranking.list[i].headroom);
	for (size_t i = 0;
	     r->failure.kind == FAILURE_CUDA_OOM && i < r->devices.first->setting_count; i++)
		add_what_if(r, r->devices.first->settings[i].change,
		    r->devices.first->settings[i].fits,
		    (double)r->devices.first->settings[i].headroom);
	if (r->failure.limit != LIMIT_NONE && r->failure.limit != LIMIT_UNKNOWN &&
	    r->failure.limit != LIMIT_MAPPINGS)
		add_what_if(r, "twice the limit", room + (double)r->failure.limit_bytes >= 0,
		    room + (double)r->failure.limit_bytes);
}
