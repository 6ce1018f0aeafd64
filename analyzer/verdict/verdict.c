/*
 * verdict.c - one process: model, failure, detectors, replay, rank, ledger, words. Which process of
 * a set that is, is for subject.c.
 */
#include "verdict/verdict.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/open_call.h"
#include "util/progress.h"
#include "verdict/counterfactual.h"
#include "verdict/coverage.h"
#include "verdict/device.h"
#include "verdict/failure.h"
#include "verdict/fixes.h"
#include "verdict/kill.h"
#include "verdict/ledger.h"
#include "verdict/rank.h"
#include "verdict/subject.h"
#include "verdict/words.h"

#define PROGRESS_EVENTS 65536u

int subject_model(struct feed feed, struct model **out, struct err *err)
{
	struct model *m;
	struct event e;
	int rc = model_new(feed, &m, err);

	if (rc)
		return rc;
	progress_begin("reading", feed.facts(feed.self)->event_bytes);
	rc = feed.rewind(feed.self, err);
	while (rc == 0 && (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = model_apply(m, &e, err);
		if (m->events % PROGRESS_EVENTS == 0 && feed.bytes_read)
			progress_step(feed.bytes_read(feed.self));
	}
	progress_end();
	if (rc < 0) {
		model_free(m);
		return rc;
	}
	model_finish(m);
	*out = m;
	return 0;
}

static int detect(const struct scene *scene, struct verdict_result *r, struct err *err)
{
	r->candidate_count = 0;
	for (size_t i = 0; detectors[i] && r->candidate_count < CANDIDATES_MAX; i++) {
		struct candidate *c = &r->candidates[r->candidate_count];
		void *state = NULL;
		int rc = detectors[i]->open(scene, &state);

		if (rc)
			return err_set(
			    err, rc, "no memory for the detector %s", detectors[i]->name);
		memset(c, 0, sizeof(*c));
		rc = detectors[i]->judge(state, &c->finding);
		detectors[i]->close(state);
		if (rc < 0)
			return err_set(err, rc, "the detector %s failed", detectors[i]->name);
		r->candidate_count += rc == 0;
	}
	return 0;
}

/* Where the growth began: with the first block of the earliest cause whose shape is there. */
static uint64_t growth_start(const struct verdict_result *r)
{
	uint64_t start = r->places->moment_ns;

	for (size_t i = 0; i < r->candidate_count; i++) {
		const struct finding *f = &r->candidates[i].finding;
		const struct place *p;

		if (f->blame == PLACE_NONE || f->strength < RANK_STRENGTH_MIN)
			continue;
		p = &r->places->list[f->blame];
		/* A refused request alone has no beginning but itself. */
		if (p->step_count && p->first_ns < start)
			start = p->first_ns;
	}
	return start;
}

static int weigh(struct verdict_result *r, struct feed feed, bool failed, struct err *err)
{
	struct replay_result replays[CANDIDATES_MAX];
	struct rank_input in = {.limit_bytes = r->failure.limit_bytes,
	    .usage_bytes = r->failure.usage_bytes,
	    .request_bytes = r->failure.requested_bytes,
	    .failed = failed};
	int rc = 0;

	memset(replays, 0, sizeof(replays));
	if (failed)
		rc = counterfactual_replay(feed, r->places, r->candidates, r->candidate_count,
		    growth_start(r), r->places->moment_ns, replays, err);
	else
		for (size_t i = 0; i < r->candidate_count; i++)
			replays[i].live = r->model->peak_bytes;
	if (rc)
		return rc;
	rank_candidates(&in, r->candidates, replays, r->candidate_count);
	return 0;
}

static int judge(struct verdict_result *r, struct feed feed, bool failed, struct err *err)
{
	struct scene scene = {.model = r->model,
	    .places = r->places,
	    .failure = failed ? model_failure(r->model) : NULL,
	    .failed = failed,
	    .limit_bytes = r->failure.limit_bytes,
	    .usage_bytes = r->failure.usage_bytes};
	int rc = detect(&scene, r, err);

	return rc ? rc : weigh(r, feed, failed, err);
}

/* The third case of the rule in kill.c. */
static bool grew_until_killed(const struct verdict_result *r)
{
	const struct candidate *best = &r->candidates[0];

	return r->kill.rising && r->candidate_count && best->admissible &&
	       best->confidence >= RANK_CONFIDENCE_MIN && best->share >= 0.5;
}

/* "render[abi:cxx11]" is what the compiler calls it; the source says "render". */
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

static void blame(struct verdict_result *r, const struct finding *f)
{
	const struct places *places = r->places;
	const struct place *main;
	uint64_t bytes = 0;

	if (f->blame == PLACE_NONE)
		return;
	main = &places->list[f->blame];
	r->verdict.blame.function = without_tags(r, main->function);
	r->verdict.blame.file = main->file;
	r->verdict.blame.line = main->line;
	for (uint32_t i = 0; i < f->claim_count; i++) {
		const struct place *p = &places->list[f->claims[i].place];

		if (strcmp(p->function, main->function) == 0 &&
		    (p->file == main->file ||
			(p->file && main->file && strcmp(p->file, main->file) == 0)))
			bytes += f->claims[i].bytes;
	}
	r->verdict.blame.bytes = bytes + f->request_bytes;
	if (!main->stack)
		return;
	r->verdict.blame.stack.count = r->model->feed.symbols(
	    r->model->feed.self, main->stack, &r->verdict.blame.stack.symbols);
	for (size_t i = r->verdict.blame.stack.count; i-- > 0;) {
		const struct symbol *s = &r->verdict.blame.stack.symbols[i];

		if (s->function && strcmp(s->function, main->function) == 0 &&
		    s->line == main->line) {
			r->verdict.blame.frame = i;
			break;
		}
	}
}

static const char *what_next(const struct verdict_result *r)
{
	if (r->failure.kind == FAILURE_NONE && r->kill.counter == KILL_COUNTER_ROSE)
		return "The kernel's OOM killer struck on this machine while it ran: `dmesg` or "
		       "`journalctl -k` names its victim.";
	if (r->failure.kind == FAILURE_NONE && r->kill.counter == KILL_COUNTER_QUIET)
		return "Let it run longer before it is killed (a higher limit), so that what grows "
		       "is told from what is only large; the logs of earlyoom, systemd-oomd or the "
		       "kubelet say whether one of them killed it.";
	if (r->failure.kind == FAILURE_NONE)
		return "Run it under `whyoom run`, so that its end and its memory are seen from "
		       "outside.";
	if (r->failure.limit == LIMIT_UNKNOWN || r->failure.limit == LIMIT_NONE)
		return "Run it under `whyoom run` with the limit that strikes, until it fails "
		       "again; a longer run shows more of the growth.";
	return "Let it run longer before it fails (a higher limit), so that what grows is told "
	       "from what is only large; for Python's small objects use `whyoom run "
	       "--python-objects`.";
}

/* How sure one can be that a kill was for want of memory when only growth says so, and that it was
 * not when only the counters do: most of the way, but somebody sent it. */
#define KILL_GREW_SURE 0.95
#define KILL_FLAT_SURE 0.85

static void kill_evidence(struct verdict_result *r)
{
	struct verdict *v = &r->verdict;
	const struct kill_view *k = &r->kill;
	const struct {
		const char *fact;
		double value;
		const char *unit;
		bool known;
	} facts[] = {
	    {"most alive in the first two thirds of the run", (double)k->live_early, "bytes", true},
	    {"most alive in the last third", (double)k->live_late, "bytes", true},
	    {"most resident in the first two thirds of the run", (double)k->rss_early, "bytes",
		k->rss_early > 0},
	    {"most resident in the last third", (double)k->rss_late, "bytes", k->rss_early > 0},
	    {"rises of the kernel's counts of OOM kills while it ran", 0, "1",
		k->counter == KILL_COUNTER_QUIET},
	};

	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (facts[i].known && v->evidence_count < EVIDENCE_MAX)
			v->evidence[v->evidence_count++] =
			    (struct evidence){facts[i].fact, facts[i].value, facts[i].unit};
}

/* Nothing ran out, as far as was seen; but it did not end by itself. */
static bool unexplained(const struct verdict_result *r, bool failed)
{
	return r->kill.killed && !failed &&
	       (r->kill.rising || r->kill.counter != KILL_COUNTER_QUIET);
}

static void decide(struct verdict_result *r, bool failed, const char *next)
{
	struct verdict *v = &r->verdict;
	const struct candidate *best = r->candidate_count ? &r->candidates[0] : NULL;
	const struct candidate *second = r->candidate_count > 1 ? &r->candidates[1] : NULL;
	double sure = best ? best->confidence : 0;

	/* Losses blur; a shape that is clear in spite of them is still there. */
	if (r->coverage.lost_events && best)
		sure *= 1 - 0.5 * (double)r->coverage.lost_events /
				(double)(r->model->events + r->coverage.lost_events);
	v->cause = "unknown";
	v->confidence = 0;
	v->next = next ? next : what_next(r);
	if (best && !(r->coverage.gap && !(failed && r->coverage.blurred)) &&
	    sure >= RANK_CONFIDENCE_MIN && best->admissible && !unexplained(r, failed)) {
		v->cause = best->finding.cause;
		v->confidence = sure;
		v->next = NULL;
		blame(r, &best->finding);
	} else if (failed) {
		second = best;
	}
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
	if (second && second->score > 0) {
		v->runner_up = second->finding.cause;
		v->runner_up_confidence =
		    fmin(second->confidence, v->confidence > 0 ? 1 - v->confidence : 1);
	} else if (strcmp(v->cause, "leak") == 0) {
		/* Kept for ever on purpose or by mistake: only a known store tells. */
		v->runner_up = "state-retention";
		v->runner_up_confidence = (1 - v->confidence) / 2;
	}
}

static void add_what_if(struct verdict_result *r, const char *change, bool fits, double headroom)
{
	if (r->what_if_count < WHAT_IF_MAX && change)
		r->what_if[r->what_if_count++] = (struct what_if){change, fits, (int64_t)headroom};
}

static void what_ifs(struct verdict_result *r)
{
	static const struct {
		const char *cause, *change;
	} words[] = {
	    {"prompt-growth", "growth capped at its early size"},
	    {"leak", "finished work released"},
	    {"oversized-intermediate", "the large intermediate streamed in pieces"},
	};
	double room = (double)r->failure.limit_bytes - (double)r->failure.usage_bytes -
		      (double)r->failure.requested_bytes;

	if (r->failure.kind == FAILURE_NONE)
		return;
	for (size_t i = 0; i < r->candidate_count; i++)
		for (size_t w = 0; w < sizeof(words) / sizeof(*words); w++)
			if (strcmp(words[w].cause, r->candidates[i].finding.cause) == 0)
				add_what_if(r, words[w].change, r->candidates[i].fits,
				    (double)r->candidates[i].headroom);
	if (r->failure.limit != LIMIT_NONE && r->failure.limit != LIMIT_UNKNOWN)
		add_what_if(r, "twice the limit", room + (double)r->failure.limit_bytes >= 0,
		    room + (double)r->failure.limit_bytes);
}

static int recovered(struct verdict_result *r)
{
	const struct model *m = r->model;

	r->recovered = calloc(m->failure_count + 1, sizeof(*r->recovered));
	if (!r->recovered)
		return -ENOMEM;
	r->recovered_total = m->bursts - (model_failure(m) != NULL);
	for (size_t i = 0; i < m->failure_count; i++) {
		const struct failure *f = &m->failures[i];
		struct recovered *to = &r->recovered[r->recovered_count];

		if (!f->recovered)
			continue;
		*to = (struct recovered){.time_ns = f->time_ns,
		    .size = f->size,
		    .count = f->count,
		    .retried = f->retried};
		if (f->stack)
			to->stack.count =
			    m->feed.symbols(m->feed.self, f->stack, &to->stack.symbols);
		r->recovered_count++;
	}
	return 0;
}

static void account(struct verdict_result *r, const struct supervised *s, bool failed,
    const struct levels *levels, uint64_t age_ns)
{
	const char *python = r->model->feed.info(r->model->feed.self, "python");
	struct ledger_input in = {.model = r->model,
	    .places = r->places,
	    .failure = &r->failure,
	    .levels = levels,
	    .age_ns = age_ns,
	    .at = failed ? "failure" : "peak",
	    .candidates = r->candidates,
	    .candidate_count = failed ? r->candidate_count : 0,
	    .interpreter = python ? r->model->feed.info(r->model->feed.self, "exe") : NULL};

	ledger_make(&in, &r->ledger);
	(void)s;
}

int subject_judge(
    struct verdict_result *r, struct feed feed, const struct supervised *s, struct err *err)
{
	const struct trace_facts *facts = feed.facts(feed.self);
	struct levels *levels = malloc(sizeof(*levels));
	const char *next;
	uint64_t age;
	bool killed, failed;
	enum moment moment;
	int rc = -ENOMEM;

	if (!levels)
		goto out;
	failure_read(r->model, facts, s, &r->failure);
	kill_read(r->model, facts, s, &r->failure, &r->kill);
	/* A kill that nothing explains yet: growth may. */
	killed = r->kill.killed && r->failure.kind == FAILURE_NONE;
	failed = killed || r->failure.kind != FAILURE_NONE;
	moment = failed ? failure_moment(r->model) : AT_PEAK;
again:
	if (!failed)
		failure_limits(r->model, s, &r->failure);
	places_free(r->places);
	r->places = NULL;
	rc = places_new(r->model, moment, &r->places, err);
	if (!rc && failed)
		rc = open_call_read(feed, r->places, err);
	if (rc)
		goto out;
	rc = judge(r, feed, failed, err);
	if (rc)
		goto out;
	if (killed) {
		killed = false;
		if (grew_until_killed(r)) {
			r->failure.kind = FAILURE_OOM_KILL;
			r->failure.kill_evidence = kill_grew_evidence(&r->kill);
		} else {
			failed = false;
			moment = AT_PEAK;
			goto again;
		}
	}
	failure_levels(r->model, s, failed, model_failure(r->model) && failed, r->places->moment_ns,
	    levels, &age);
	coverage_read(r->model, facts, levels, &r->coverage, &next);
	decide(r, failed, next);
	account(r, s, failed, levels, age);
	what_ifs(r);
	rc = recovered(r);
	if (rc)
		goto out;
	fixes_for(
	    r, r->verdict.cause, NULL, NULL, r->verdict.fixes, &r->verdict.fix_count, &r->arena);
	r->verdict.summary = words_summary(r);
	rc = r->verdict.summary ? device_judge(r, feed, err) : -ENOMEM;
out:
	free(levels);
	return rc == -ENOMEM ? err_set(err, rc, "no memory for the verdict") : rc;
}

void verdict_fini(struct verdict_result *r)
{
	free(r->devices);
	free(r->spaces);
	places_free(r->places);
	model_free(r->model);
	free(r->processes);
	free(r->recovered);
	arena_free(&r->arena);
	memset(r, 0, sizeof(*r));
}
