#include "verdict/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verdict/failure/volume.h"
#include "verdict/framework/framework_frames.h"
#include "verdict/request/flow.h"
#include "verdict/subject.h"
#include "verdict/tree/tree.h"

/* `feed`: of the only process; NULL: of several, the subject is unknown before their events are
 * read. */
static int open_frameworks(struct frameworks *f, struct feed *feed, struct err *err)
{
	f->knowledge = knowledge_open();
	f->frames = f->knowledge ? framework_frames_new(f->knowledge) : NULL;
	if (!f->frames)
		return err_set(err, -ENOMEM, "no memory for what is known of frameworks");
	if (feed)
		framework_look_ahead(f->frames, feed);
	return 0;
}

static uint64_t moment_ns(const struct verdict_result *r)
{
	return r->failure.kind != FAILURE_NONE ? r->failure.time_ns : r->model->peak.time_ns;
}

/* Of a process that still runs. */
static int look_ahead(struct verdict_result *r, const struct verdict_hints *hints, struct err *err)
{
	if (r->tree.processes[r->tree.subject].how != END_RUNNING || r->volume)
		return 0;
	return prospect_of(r->model,
	    hints && hints->warm_up_ns ? *hints->warm_up_ns : PROSPECT_WARM_UP_NS, &r->prospect,
	    err);
}

static int judge_set(struct verdict_result *r, const struct trace_set *set,
    const struct verdict_hints *hints, struct err *err)
{
	struct choice chosen;
	struct feed only = set->count == 1 ? feed_of_trace(set->images[0]) : (struct feed){0};
	int rc = open_frameworks(&r->frameworks, set->count == 1 ? &only : NULL, err);

	if (rc)
		return rc;
	rc = choice_make(&chosen, set, hints, &r->arena, err);
	r->tree = chosen.tree;
	r->model = chosen.model;
	r->trace = chosen.trace;
	if (!rc)
		rc = subject_judge(r, r->model->feed, chosen.supervised, err);
	if (!rc && tree_settle(&r->tree, chosen.courses, moment_ns(r), &r->arena))
		rc = err_set(err, -ENOMEM, "no memory for the processes");
	if (!rc)
		rc = look_ahead(r, hints, err);
	choice_fini(&chosen);
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

int verdict_of_running(struct feed feed, struct verdict_result *out, struct err *err)
{
	int rc;

	memset(out, 0, sizeof(*out));
	rc = open_frameworks(&out->frameworks, &feed, err);
	if (!rc)
		rc = judge_feed(out, feed, NULL, err);
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
	    .tree.workers = of->tree.workers,
	    .tree.watched = of->tree.watched};
	memcpy(out->tree.gpu_others, of->tree.gpu_others, sizeof(out->tree.gpu_others));
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
