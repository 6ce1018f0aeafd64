/* verdict.c - see verdict.h. */
#include "verdict/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/failure/volume.h"
#include "verdict/framework/framework_frames.h"
#include "verdict/request/flow.h"
#include "verdict/subject.h"
#include "verdict/tree/choice.h"

static int open_frameworks(struct frameworks *f, const struct trace_set *set, struct err *err)
{
	f->knowledge = knowledge_open();
	f->frames = f->knowledge ? framework_frames_new(f->knowledge) : NULL;
	if (!f->frames)
		return err_set(err, -ENOMEM, "no memory for what is known of frameworks");
	/* Among several, the subject is not known before their events are read. */
	if (set->count == 1) {
		struct feed feed = feed_of_trace(set->images[0]);

		framework_look_ahead(f->frames, &feed);
	}
	return 0;
}

static int judge_set(struct verdict_result *r, const struct trace_set *set,
    const struct verdict_hints *hints, struct err *err)
{
	struct choice chosen;
	int rc = open_frameworks(&r->frameworks, set, err);

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
	return r->ranking.count && r->ranking.list[0].finding.cause == CAUSE_EXTERNAL;
}

/* SIGINT is what OpenBLAS sends itself when it gets no thread; and what a person sends to whom
 * nothing is wrong with, once it has started. */
static bool was_interrupted(const struct verdict_result *r, struct ending end)
{
	return end.how == END_SIGNAL && end.code == SIGINT && r->ranking.count &&
	       r->ranking.list[0].finding.cause != CAUSE_EXTERNAL;
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

int verdict_of_set(const struct trace_set *set, const struct verdict_hints *hints,
    struct verdict_result *out, struct err *err)
{
	struct verdict_result r = {0};
	int rc = judge_set(&r, set, hints, err);

	if (rc)
		verdict_fini(&r);
	else
		*out = r;
	return rc;
}

static int judge_feed(
    struct verdict_result *r, struct feed feed, const struct supervised *s, struct err *err)
{
	int rc = subject_model(feed, &r->model, err);

	if (rc)
		return rc;
	r->tree.processes = calloc(1, sizeof(*r->tree.processes));
	if (!r->tree.processes)
		return err_set(err, -ENOMEM, "no memory for the verdict");
	r->tree.processes[r->tree.count++] = tree_process(&r->arena, feed, r->model, s);
	return subject_judge(r, feed, s, err);
}

int verdict_of_feed(struct feed feed, const struct supervised *supervised,
    struct verdict_result *out, struct err *err)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = judge_feed(out, feed, supervised, err);
	if (rc)
		verdict_fini(out);
	return rc;
}

int verdict_again(const struct verdict_result *of, struct feed feed,
    const struct supervised *supervised, struct verdict_result *out, struct err *err)
{
	int rc;

	*out = (struct verdict_result){.frameworks = of->frameworks,
	    .tree.victim = of->tree.victim,
	    .tree.damage = of->tree.damage,
	    .tree.siblings = of->tree.siblings,
	    .tree.workers = of->tree.workers};
	out->frameworks.borrowed = true;
	rc = judge_feed(out, feed, supervised, err);
	if (rc)
		verdict_fini(out);
	return rc;
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
