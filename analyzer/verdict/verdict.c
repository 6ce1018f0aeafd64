/*
 * verdict.c - one process: model, failure, detectors, replay, rank, ledger, words. Which process of
 * a set that is, is for subject.c.
 */
#include "verdict/verdict.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "model/callsite/open_call.h"
#include "util/num.h"
#include "util/progress.h"
#include "verdict/device/device.h"
#include "verdict/failure/cgroup_shares.h"
#include "verdict/failure/failure.h"
#include "verdict/failure/kill.h"
#include "verdict/failure/volume.h"
#include "verdict/framework/framework_roles.h"
#include "verdict/judge/coverage.h"
#include "verdict/judge/decide.h"
#include "verdict/judge/judge.h"
#include "verdict/judge/rank.h"
#include "verdict/ledger/arenas.h"
#include "verdict/ledger/host_slack.h"
#include "verdict/ledger/ledger.h"
#include "verdict/request/flow.h"
#include "verdict/request/waited.h"
#include "verdict/subject.h"
#include "verdict/wording/fixes.h"
#include "verdict/wording/words.h"

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
	feed_rest(&feed);
	failure_settle(m);
	*out = m;
	return 0;
}

/* A cause whose shape is there explains the end: the third case of the rule in kill.c, and what
 * nobody saw to be refused. */
static bool is_explained(const struct verdict_result *r)
{
	const struct candidate *best = &r->ranking.list[0];

	return (kill_grew(&r->kill) || r->kill.at_limit) && r->ranking.count && best->admissible &&
	       best->confidence >= RANK_CONFIDENCE_MIN && best->share >= 0.5;
}

/* Nothing else was refused for which there is a limit that explains it, or killed. */
static bool may_be_volume(const struct verdict_result *r)
{
	const struct failure *refused = model_failure(r->model);

	return refused ? refused->api == TRACE_API_FALLOCATE
		       : r->failure.kind == FAILURE_NONE && !r->kill.at_limit &&
			     r->kill.counter != KILL_COUNTER_ROSE;
}

/* Other workers of the same pool, where the limit is theirs, too; in a cgroup they have no more
 * than all others in it. */
static struct scene_workers workers_of(const struct verdict_result *r, const struct levels *levels)
{
	struct scene_workers workers = r->tree.workers;

	if (r->failure.limit == LIMIT_CGROUP && levels->known[TRACE_LEVEL_CG_ANON])
		workers.bytes = num_least(workers.bytes, group_of(r->model, levels).others);
	else if (r->failure.limit != LIMIT_SYSTEM && r->failure.limit != LIMIT_CGROUP)
		workers = (struct scene_workers){0};
	return workers;
}

/* What others hold of the memory that ran out. */
static struct scene_others others_of(const struct verdict_result *r, const struct levels *levels)
{
	struct scene_others others = {.known = true};

	if (r->volume)
		others.bytes = volume_shares(r).files;
	else
		others = group_strangers(r->model, levels, &r->failure, r->tree.siblings);
	others.workers = workers_of(r, levels);
	return others;
}

/* From when on growth counts where the whole of it has no known shape: who was killed with memory
 * left was not killed for what it held, but may have been growing beside that. */
static uint64_t half_time(const struct model *m)
{
	return num_least(m->first_ns, m->last_ns) / 2 + m->last_ns / 2;
}

static bool is_external(const struct verdict_result *r)
{
	return r->ranking.count && strcmp(r->ranking.list[0].finding.cause, "external") == 0;
}

/* SIGINT is what OpenBLAS sends itself when it gets no thread; and what a person sends to whom
 * nothing is wrong with, once it has started. */
static bool was_interrupted(const struct verdict_result *r, struct ending end)
{
	return end.how == END_SIGNAL && end.code == SIGINT && r->ranking.count &&
	       strcmp(r->ranking.list[0].finding.cause, "external") != 0;
}

static int recovered(struct verdict_result *r)
{
	const struct model *m = r->model;

	r->recoveries.list = calloc(m->failure_count + 1, sizeof(*r->recoveries.list));
	if (!r->recoveries.list)
		return -ENOMEM;
	r->recoveries.total = m->bursts - (model_failure(m) != NULL);
	for (size_t i = 0; i < m->failure_count; i++) {
		const struct failure *f = &m->failures[i];
		struct recovered *to = &r->recoveries.list[r->recoveries.count];

		if (f == model_failure(m))
			continue;
		*to = (struct recovered){.time_ns = f->time_ns,
		    .size = f->size,
		    .count = f->count,
		    .retried = f->retried};
		if (f->stack)
			to->stack.count =
			    m->feed.symbols(m->feed.self, f->stack, &to->stack.symbols);
		r->recoveries.count++;
	}
	return 0;
}

static int account(
    struct verdict_result *r, bool failed, const struct levels *levels, uint64_t age_ns)
{
	enum role *roles = framework_roles(r, r->model, r->callsites);
	struct volume_shares shares = {0};
	struct ledger_input in = {.model = r->model,
	    .callsites = r->callsites,
	    .failure = &r->failure,
	    .levels = levels,
	    .age_ns = age_ns,
	    .siblings = r->tree.siblings_live,
	    .volume = &shares,
	    .at = failed ? "failure" : "peak",
	    .candidates = r->ranking.list,
	    .candidate_count = failed ? r->ranking.count : 0,
	    .roles = roles};
	int rc;

	if (r->volume)
		shares = volume_shares(r);
	rc = roles ? ledger_make(&in, &r->ledger) : -ENOMEM;

	r->ledger.pid = r->model->feed.facts(r->model->feed.self)->pid;
	free(roles);
	return rc;
}

int subject_judge(struct verdict_result *r, struct feed feed, const struct supervised *s,
    bool victim, struct err *err)
{
	const struct trace_facts *facts = feed.facts(feed.self);
	struct levels *levels = malloc(sizeof(*levels));
	const char *next;
	uint64_t age, device, every, until, since_ns = 0;
	bool presumed, failed, ended_badly;
	enum moment moment;
	struct scene_slack slack;
	struct scene_work work;
	int rc = -ENOMEM;

	if (!levels)
		goto out;
	failure_read(r->model, facts, s, &r->failure);
	kill_read(r->model, facts, s, victim, &r->failure, &r->kill);
	r->kill.at_limit = r->failure.kind == FAILURE_NONE && !r->kill.killed &&
			   failure_at_limit(r->model, facts, s, &r->failure);
	ended_badly = false;
	device = r->tree.elsewhere.device;
	if (device)
		r->failure = r->tree.elsewhere.failure;
	else if (may_be_volume(r))
		device = volume_failed(r->model, facts, s, &r->failure, &ended_badly);
	if (device) {
		r->kill = (struct kill_view){0};
		r->kill.at_limit = ended_badly;
		until = r->tree.elsewhere.device ? r->failure.time_ns : UINT64_MAX;
		rc = volume_enter(r, &feed, device, until, err);
		if (rc)
			goto out;
	}
	/* An end that nothing explains yet: a shape may. */
	presumed = r->kill.at_limit || (r->kill.killed && r->failure.kind == FAILURE_NONE);
	failed = presumed || r->failure.kind != FAILURE_NONE;
	moment = failed && !r->kill.at_limit ? failure_moment(r->model) : AT_PEAK;
again:
	if (!failed && !r->kill.at_limit)
		failure_limits(r->model, s, &r->failure);
	callsites_free(r->callsites);
	r->callsites = NULL;
	r->model->files_charged = r->failure.limit == LIMIT_AS	   ? FILES_ALL
				  : r->failure.limit == LIMIT_DATA ? FILES_DATA
								   : FILES_NONE;
	rc = callsites_new(r->model, moment, &r->callsites, err);
	if (!rc)
		arenas_mark(r->model, r->callsites);
	if (!rc && failed)
		rc = open_call_read(feed, r->callsites, err);
	if (!rc)
		rc = flow_read(r, feed, r->callsites, err);
	if (rc)
		goto out;
	failure_levels(r->model, s, failed, model_failure(r->model) && failed,
	    r->callsites->moment_ns, levels, &age);
	/* Before anything is claimed: what nobody uses does not depend on it. */
	r->ranking.count = 0;
	rc = account(r, failed, levels, age);
	slack = (struct scene_slack){0};
	if (!rc && !r->volume)
		rc = host_slack_read(&feed, r->model, r->callsites, &r->ledger, &slack);
	if (!rc)
		rc = flow_read_on(r, err);
	if (!rc && r->volume)
		rc = volume_work(r->volume, moment, &work, err);
	if (rc)
		goto out;
	rc = judge_scene(r,
	    &(struct scene){.model = r->model,
		.callsites = r->callsites,
		.end.refused = failed ? model_failure(r->model) : NULL,
		.slack = slack,
		.held = &r->flow.held,
		.work = r->volume ? &work : NULL,
		.others = others_of(r, levels),
		.end.failed = failed,
		.end.since_ns = since_ns,
		.end.presumed = presumed,
		.limit.bytes = r->failure.limit_bytes,
		.limit.usage = r->failure.usage_bytes,
		.limit.is_virtual = r->failure.limit == LIMIT_AS,
		.limit.stacks = r->failure.limit == LIMIT_AS || r->failure.limit == LIMIT_DATA
				    ? ledger_get(&r->ledger, "stacks")
				    : 0,
		.sampled = feed_number(&feed, "sampled.every", &every),
		.limit.threads = num_less(levels_value(levels, TRACE_LEVEL_THREADS), 1)},
	    NULL, feed, err);
	if (rc)
		goto out;
	if (presumed && !since_ns && !is_explained(r) && kill_with_memory_left(&r->kill)) {
		since_ns = half_time(r->model);
		goto again;
	}
	if (presumed) {
		presumed = false;
		if (r->kill.at_limit && (was_interrupted(r, ending_of(r->model, facts, s)) ||
					    (r->volume && is_external(r))))
			r->kill.at_limit = false;
		if (is_explained(r) && r->kill.at_limit) {
			r->failure.kind = FAILURE_HOST_ALLOC;
		} else if (is_explained(r)) {
			r->failure.kind = kill_grew_kind(&r->kill);
			r->failure.kill_evidence = kill_grew_evidence(&r->kill);
		} else {
			failed = false;
			since_ns = 0;
			moment = AT_PEAK;
			/* It ended badly, and that was full: it need not be why. */
			if (r->volume) {
				volume_leave(r, &feed);
				r->kill.at_limit = false;
			}
			goto again;
		}
	}
	feed_rest(&feed);
	coverage_read(r->volume ? r->volume->whole : r->model, r->callsites, facts, levels,
	    failed ? (struct ending){END_EXIT, 0} : ending_of(r->model, facts, s), &r->coverage,
	    &next);
	/* What is resident says nothing of what lies there. */
	if (r->volume && !r->coverage.blurred)
		r->coverage.gap = next = NULL;
	decide(r, failed, next);
	rc = account(r, failed, levels, age);
	decide_what_ifs(r);
	if (!rc)
		rc = waited_read(r, feed, failed ? model_failure(r->model) : NULL, err);
	if (!rc)
		rc = recovered(r);
	if (rc)
		goto out;
	fixes_for(r, r->verdict.cause, r->verdict.fixes, &r->verdict.fix_count, &r->arena);
	rc = device_judge(r, feed, err);
	flow_settle(r);
	if (!rc && !r->verdict.summary) {
		r->verdict.summary = words_summary(r);
		rc = r->verdict.summary ? 0 : -ENOMEM;
	}
out:
	free(levels);
	return rc == -ENOMEM ? err_set(err, rc, "no memory for the verdict") : rc;
}

void verdict_fini(struct verdict_result *r)
{
	free(r->devices.list);
	free(r->devices.spaces);
	volume_free(r->volume);
	flow_fini(&r->flow);
	callsites_free(r->callsites);
	model_free(r->model);
	if (!r->frameworks.borrowed) {
		framework_frames_free(r->frameworks.frames);
		knowledge_free(r->frameworks.knowledge);
	}
	free(r->tree.processes);
	free(r->recoveries.list);
	arena_free(&r->arena);
	memset(r, 0, sizeof(*r));
}
