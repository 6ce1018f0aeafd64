/* subject.c - see subject.h. Each phase is a function; judge() is their order. */
#include "verdict/subject.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "model/callsite/open_call.h"
#include "util/num.h"
#include "util/progress.h"
#include "util/tuned.h"
#include "verdict/device/device_cause.h"
#include "verdict/failure/failure.h"
#include "verdict/failure/kill.h"
#include "verdict/failure/volume.h"
#include "verdict/judge/arena_blame.h"
#include "verdict/judge/coverage.h"
#include "verdict/judge/decide.h"
#include "verdict/judge/judge.h"
#include "verdict/judge/rank.h"
#include "verdict/ledger/host_slack.h"
#include "verdict/ledger/ledger.h"
#include "verdict/request/flow.h"
#include "verdict/request/waited.h"
#include "verdict/wording/fixes.h"
#include "verdict/wording/words.h"

TUNED(double, EXPLAINED_SHARE, 0.5,
    "a cause of less than half of the growth leaves more unexplained than it explains");

/* What the phases assume. If the process ended badly and nothing was refused, growth of memory may
 * explain it: the phases run for HYPOTHESIS_GROWTH, and again for the next hypothesis while no
 * cause explains the end. */
enum hypothesis {
	HYPOTHESIS_NONE, /* the failure was recorded, or the process ended well */
	HYPOTHESIS_GROWTH, /* all that grew explains the end */
	HYPOTHESIS_LATE_GROWTH, /* growth in the second half of the run explains it */
};

/* One process under judgement. */
struct judging {
	struct verdict_result *r;
	struct feed feed; /* of r->model */
	const struct supervised *supervised; /* NULL: not watched */
	enum hypothesis hypothesis;
	bool failed; /* it ran out of memory, as recorded or by hypothesis */
	enum moment moment; /* the result's moment */
	struct levels levels; /* at that moment */
	uint64_t age_ns; /* age of their sample of resident bytes */
	struct scene_slack slack;
	struct scene_work work; /* with r->volume */
};

int subject_model(struct feed feed, struct model **out, struct err *err)
{
	return subject_model_with(feed, &(struct model_options){0}, out, err);
}

int subject_model_with(
    struct feed feed, const struct model_options *options, struct model **out, struct err *err)
{
	struct model *m;
	struct event e;
	int rc = model_new(feed, &m, err);

	if (rc)
		return rc;
	m->options = *options;
	feed_progress(&feed, "reading");
	rc = feed.rewind(feed.self, err);
	while (rc == 0 && (rc = feed.next(feed.self, &e, err)) == 1) {
		rc = model_apply(m, &e, err);
		feed_passed(&feed, m->run.events);
	}
	progress_end();
	if (rc < 0) {
		model_free(m);
		return rc;
	}
	model_finish(m);
	feed_rest(&feed);
	failure_settle(m);
	*out = m;
	return 0;
}

/* True if nothing was refused but fallocate(), and neither a limit nor a kill explains the end. */
static bool may_be_volume(const struct verdict_result *r)
{
	const struct failure *refused = model_failure(r->model);

	return refused ? refused->api == TRACE_API_FALLOCATE
		       : r->failure.kind == FAILURE_NONE && !r->kill.at_limit &&
			     r->kill.counter != KILL_COUNTER_ROSE;
}

/* Return the other workers of the pool, if they share the limit; in a cgroup they hold at most what
 * all others in it do. */
static struct scene_workers workers_of(const struct verdict_result *r, const struct levels *levels)
{
	struct scene_workers workers = r->tree.workers;

	if (limit_is_cgroup(r->failure.limit) && levels->known[TRACE_LEVEL_CG_ANON])
		workers.bytes = num_least(workers.bytes, cgroup_shares_of(r->model, levels).others);
	else if (r->failure.limit != LIMIT_SYSTEM && !limit_is_cgroup(r->failure.limit))
		workers = (struct scene_workers){0};
	return workers;
}

/* Return what others hold of the memory that ran out. */
static struct scene_others others_of(
    const struct verdict_result *r, const struct supervised *s, const struct levels *levels)
{
	struct scene_others others = {.known = true};

	if (r->volume) {
		others.bytes = volume_shares(r).files;
		others.left = volume_shares(r).left;
	} else
		others =
		    cgroup_shares_strangers(r->model, s, levels, &r->failure, r->tree.siblings);
	others.workers = workers_of(r, levels);
	return others;
}

/* Read the failure from the process and the supervisor, and take the first hypothesis. */
static int read_failure(struct judging *j, struct err *err)
{
	struct verdict_result *r = j->r;
	uint64_t device = r->tree.elsewhere.device, until_ns = UINT64_MAX;
	bool ended_badly = false, presumed;
	int rc;

	failure_read(r->model, j->supervised, &r->failure);
	kill_read(r->model, j->supervised, r->tree.victim, &r->failure, &r->kill);
	r->kill.at_limit = r->failure.kind == FAILURE_NONE && !r->kill.killed &&
			   failure_at_limit(r->model, j->supervised, &r->failure);
	if (device) {
		r->failure = r->tree.elsewhere.failure;
		until_ns = r->failure.time_ns;
	} else if (may_be_volume(r)) {
		device = volume_failed(r->model, j->supervised, &r->failure, &ended_badly);
	}
	if (device) {
		r->kill = (struct kill_view){.at_limit = ended_badly};
		rc = volume_enter(r, &j->feed, device, until_ns, err);
		if (rc)
			return rc;
	}
	if (!device && !r->kill.at_limit && r->failure.kind == FAILURE_NONE &&
	    !spaces_failure(r->model->spaces) &&
	    failure_stalled(r->model, j->supervised, &r->failure))
		r->kill = (struct kill_view){.seen = r->kill.seen};
	presumed = r->kill.at_limit || (r->kill.killed && r->failure.kind == FAILURE_NONE);
	j->hypothesis = presumed ? HYPOTHESIS_GROWTH : HYPOTHESIS_NONE;
	j->failed = presumed || r->failure.kind != FAILURE_NONE;
	j->moment = j->failed && !r->kill.at_limit ? failure_moment(r->model) : AT_PEAK;
	return 0;
}

/* Make the ledger. `in_classes`: the causes' claims have rows of their own. */
static int account(struct judging *j, bool in_classes)
{
	const struct ledger_input in = {.r = j->r,
	    .levels = &j->levels,
	    .age_ns = j->age_ns,
	    .at = j->failed ? "failure" : "peak",
	    .with_claims = in_classes && j->failed};

	return ledger_make(&in, &j->r->ledger);
}

/* Read the moment: live bytes, their call sites, and the requests. */
static int read_moment(struct judging *j, struct err *err)
{
	struct verdict_result *r = j->r;
	int rc;

	if (!j->failed && !r->kill.at_limit)
		failure_limits(r->model, j->supervised, &r->failure);
	callsites_free(r->callsites);
	r->callsites = NULL;
	r->model->options.files_charged = r->failure.limit == LIMIT_AS	   ? FILES_ALL
					  : r->failure.limit == LIMIT_DATA ? FILES_DATA
									   : FILES_NONE;
	rc = callsites_new(r->model, j->moment, &r->callsites, err);
	if (rc)
		return rc;
	arenas_mark(r->model, r->callsites);
	if (j->failed)
		rc = open_call_read(j->feed, r->callsites, err);
	return rc ? rc : flow_read(r, j->feed, err);
}

/* Read malloc's free memory. It does not depend on the causes' claims; they depend on it. */
static int read_slack(struct judging *j, struct err *err)
{
	struct verdict_result *r = j->r;
	int rc;

	failure_levels(r->model, j->supervised,
	    !j->failed		      ? LEVELS_AT_PEAK
	    : model_failure(r->model) ? LEVELS_AT_REFUSAL
				      : LEVELS_AT_END,
	    r->callsites->moment_ns, &j->levels, &j->age_ns);
	rc = account(j, false);
	j->slack = (struct scene_slack){0};
	if (!rc && !r->volume)
		rc = host_slack_read(&j->feed, r->model, r->callsites, &r->ledger, &j->slack);
	if (!rc)
		rc = flow_read_on(&r->flow, err);
	if (!rc && r->volume)
		rc = volume_work(r->volume, j->moment, &j->work, err);
	return rc;
}

static struct scene_limit limit_of(const struct judging *j)
{
	const struct verdict_result *r = j->r;
	const struct failure_view *f = &r->failure;
	bool has_stacks = f->limit == LIMIT_AS || f->limit == LIMIT_DATA;
	uint64_t threads = num_less(levels_value(&j->levels, TRACE_LEVEL_THREADS), 1);

	return (struct scene_limit){.bytes = f->limit_bytes,
	    .usage = f->usage_bytes,
	    .is_virtual = f->limit == LIMIT_AS,
	    .stacks = has_stacks ? ledger_get(&r->ledger, LEDGER_STACKS) : 0,
	    .threads = threads,
	    .threads_ended =
		num_less(levels_value(&j->levels, TRACE_LEVEL_THREADS_STARTED), threads),
	    .unjoined = has_stacks ? ledger_get(&r->ledger, LEDGER_UNJOINED) : 0,
	    .before = ledger_get(&r->ledger, LEDGER_BEFORE)};
}

static uint64_t half_time(const struct model *m)
{
	return num_least(m->run.first_ns, m->run.last_ns) / 2 + m->run.last_ns / 2;
}

static int judge_host(struct judging *j, struct err *err)
{
	struct verdict_result *r = j->r;
	uint64_t every = 0;
	struct scene scene = {.model = r->model,
	    .callsites = r->callsites,
	    .work = r->volume ? &j->work : NULL,
	    .sample_every = feed_number(&j->feed, "sampled.every", &every) ? every : 0,
	    .held = &r->flow.held,
	    .end = {.failed = j->failed,
		.presumed = j->hypothesis != HYPOTHESIS_NONE,
		.refused = j->failed ? model_failure(r->model) : NULL,
		.since_ns = j->hypothesis == HYPOTHESIS_LATE_GROWTH ? half_time(r->model) : 0},
	    .limit = limit_of(j),
	    .slack = j->slack,
	    .others = others_of(r, j->supervised, &j->levels)};

	return judge_scene(r, &scene, NULL, j->feed, err);
}

/* True if a cause's shape explains the end: kill.c's third case, or an unrecorded refusal. */
static bool is_explained(const struct verdict_result *r)
{
	const struct candidate *best = &r->ranking.list[0];

	return (kill_grew(&r->kill) || r->kill.at_limit) && r->ranking.count && best->admissible &&
	       best->confidence >= RANK_CONFIDENCE_MIN && best->share >= EXPLAINED_SHARE;
}

/* True if the process ended at its limit for another reason than memory. OpenBLAS sends itself
 * SIGINT when it gets no thread, but a person interrupts a process that works; and a full file
 * system that others filled need not be the reason for a bad end. */
static bool is_other_end(const struct judging *j)
{
	const struct verdict_result *r = j->r;
	struct ending end = failure_ending(r->model, j->supervised);
	bool external = r->ranking.count && r->ranking.list[0].finding.cause == CAUSE_EXTERNAL;

	if (r->volume && external)
		return true;
	return end.how == END_SIGNAL && end.code == SIGINT && r->ranking.count && !external;
}

/* Accept the hypothesis, or take the next one and run the phases again. */
static bool is_settled(struct judging *j)
{
	struct verdict_result *r = j->r;

	if (j->hypothesis == HYPOTHESIS_NONE)
		return true;
	/* The kernel does not kill while memory is left, but late growth could fill it. */
	if (j->hypothesis == HYPOTHESIS_GROWTH && !is_explained(r) &&
	    kill_with_memory_left(&r->kill)) {
		j->hypothesis = HYPOTHESIS_LATE_GROWTH;
		return false;
	}
	j->hypothesis = HYPOTHESIS_NONE;
	if (r->kill.at_limit && is_other_end(j))
		r->kill.at_limit = false;
	if (is_explained(r)) {
		r->failure.kind = r->kill.at_limit ? FAILURE_HOST_ALLOC : kill_grew_kind(&r->kill);
		if (!r->kill.at_limit)
			r->failure.kill_evidence = kill_grew_evidence(&r->kill);
		return true;
	}
	j->failed = false;
	j->moment = AT_PEAK;
	/* The file system was full, but need not be the reason for the bad end. */
	if (r->volume) {
		volume_leave(r, &j->feed);
		r->kill.at_limit = false;
	}
	return false;
}

static int conclude(struct judging *j, struct err *err)
{
	struct verdict_result *r = j->r;
	const char *next;
	int rc;

	feed_rest(&j->feed);
	coverage_read(r->volume ? r->volume->whole : r->model, r->callsites, &j->levels,
	    j->failed ? (struct ending){END_EXIT, 0} : failure_ending(r->model, j->supervised),
	    &r->coverage, &next);
	/* Resident bytes do not matter for a file system in memory. */
	if (r->volume && !r->coverage.blurred)
		r->coverage.gap = next = NULL;
	decide(r, j->failed, next);
	rc = arena_blame(r);
	if (!rc)
		rc = account(j, true);
	decide_what_ifs(r);
	if (!rc)
		rc = waited_read(r, j->feed, j->failed ? model_failure(r->model) : NULL, err);
	if (!rc)
		fixes_for(r);
	return rc;
}

static void add_host_recoveries(const struct model *m, struct recoveries *out)
{
	const struct failure *judged = model_failure(m);

	out->total += m->refusals.bursts - (judged != NULL);
	for (size_t i = 0; i < m->refusals.count; i++) {
		const struct failure *f = &m->refusals.list[i];

		if (f != judged)
			out->list[out->count++] = (struct recovered){.time_ns = f->time_ns,
			    .size = f->size,
			    .count = f->count,
			    .retried = f->retried,
			    .stack = stack_view_of(&m->feed, f->stack)};
	}
}

static void add_device_recoveries(
    const struct model *m, const struct device_failure *judged, struct recoveries *out)
{
	const struct spaces *s = m->spaces;

	out->total += s->failure_total - (judged != NULL);
	for (size_t i = 0; i < s->failure_count; i++) {
		const struct device_failure *f = &s->failures[i];

		if (f != judged)
			out->list[out->count++] = (struct recovered){.time_ns = f->time_ns,
			    .size = f->size,
			    .count = f->count,
			    .retried = f->retried,
			    .space = s->list[f->space]->name,
			    .segment = f->segment,
			    .stack = stack_view_of(&m->feed, f->stack)};
	}
	for (size_t i = 1; i < out->count; i++)
		for (size_t k = i; k && out->list[k].time_ns < out->list[k - 1].time_ns; k--) {
			struct recovered swap = out->list[k];

			out->list[k] = out->list[k - 1];
			out->list[k - 1] = swap;
		}
}

/* List the refused requests, of the host and of devices, that the process recovered from, by time.
 * `judged`: the device's refusal of the report, or NULL; the host's is model_failure(). 0 or
 * -ENOMEM. */
static int read_recoveries(
    const struct model *m, const struct device_failure *judged, struct recoveries *out)
{
	size_t most = m->refusals.count + (m->spaces ? m->spaces->failure_count : 0);

	*out = (struct recoveries){.list = calloc(most + 1, sizeof(*out->list))};
	if (!out->list)
		return -ENOMEM;
	add_host_recoveries(m, out);
	if (m->spaces)
		add_device_recoveries(m, judged, out);
	return 0;
}

static int judge_devices(struct judging *j, struct err *err)
{
	struct verdict_result *r = j->r;
	struct device_refusal refusal;
	int rc = read_recoveries(
	    r->model, device_failed(r) ? spaces_failure(r->model->spaces) : NULL, &r->recoveries);

	if (rc)
		return rc;
	rc = device_read(r, j->feed, &refusal, err);
	if (!rc && refusal.then)
		rc = device_cause(r, j->feed, &refusal, err);
	model_free(refusal.then);
	return rc;
}

static int judge(struct judging *j, struct err *err)
{
	struct verdict_result *r = j->r;
	int rc = read_failure(j, err);

	while (!rc) {
		rc = read_moment(j, err);
		if (!rc)
			rc = read_slack(j, err);
		if (!rc)
			rc = judge_host(j, err);
		if (rc || is_settled(j))
			break;
	}
	if (!rc)
		rc = conclude(j, err);
	if (!rc)
		rc = judge_devices(j, err);
	if (rc)
		return rc;
	flow_settle(r);
	if (!r->verdict.summary)
		r->verdict.summary = words_summary(r);
	return r->verdict.summary ? 0 : -ENOMEM;
}

int subject_judge(
    struct verdict_result *r, struct feed feed, const struct supervised *s, struct err *err)
{
	struct judging *j = calloc(1, sizeof(*j));
	int rc = -ENOMEM;

	if (j) {
		*j = (struct judging){.r = r, .feed = feed, .supervised = s};
		rc = judge(j, err);
	}
	free(j);
	return rc == -ENOMEM ? err_set(err, rc, "no memory for the verdict") : rc;
}
