/*
 * subject.c - of all processes of a set, the one that the report is about: who was refused memory
 * and never got over it, else who was killed, else the one that was started.
 */
#include "verdict/subject.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/space/space.h"
#include "util/text/str.h"
#include "verdict/failure/failure.h"
#include "verdict/failure/victim.h"
#include "verdict/failure/volume.h"
#include "verdict/framework/framework_roles.h"
#include "verdict/tree.h"

static const char *command_line(struct verdict_result *r, const struct trace_facts *f)
{
	struct str s = {0};
	const char *text;

	for (size_t i = 0; f->argv && f->argv[i]; i++) {
		if (i)
			str_putc(&s, ' ');
		str_puts(&s, f->argv[i]);
	}
	if (!s.length && f->exe)
		str_puts(&s, f->exe);
	text = s.failed ? NULL : arena_copy(&r->arena, str_text(&s), s.length);
	str_free(&s);
	return text ? text : "";
}

static void describe(struct verdict_result *r, struct process *p, struct feed feed,
    const struct model *m, const struct supervised *s)
{
	const struct trace_facts *f = feed.facts(feed.self);
	struct ending end = ending_of(m, f, s);
	uint64_t last = f->last_ns > m->last_ns ? f->last_ns : m->last_ns;
	struct timespec now;

	/* It lived on after its last event, as long as somebody saw it. */
	if (s && s->ended && s->ended_ns > last)
		last = s->ended_ns;
	if (end.how == END_RUNNING && clock_gettime(CLOCK_MONOTONIC, &now) == 0) {
		uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;

		if (ns > f->start_mono_ns && ns - f->start_mono_ns > last)
			last = ns - f->start_mono_ns;
	}
	*p = (struct process){.pid = f->pid,
	    .ppid = f->ppid,
	    .cmdline = command_line(r, f),
	    .trace = f->path ? f->path : "",
	    .events = m->events,
	    .dropped = f->dropped_total + m->lost,
	    .start_real_ns = f->start_real_ns,
	    .seconds = (double)last / 1e9,
	    .how = end.how,
	    .code = end.code};
}

/* Higher: more likely what one asks about. */
#define IMPORTANT 5
static int importance(const struct model *m, const struct process *p, const struct trace_facts *f,
    const struct supervised *s)
{
	bool bad =
	    p->how == END_SIGNAL || (p->how == END_EXIT && p->code != 0) || p->how == END_UNKNOWN;

	if (model_failure(m) || spaces_failure(m->spaces))
		return bad ? IMPORTANT : 3;
	if (p->how == END_SIGNAL && p->code == 9)
		return 4;
	if (p->how == END_SIGNAL && p->code == SIGBUS && m->shm.count)
		return 4;
	/* What was killed with it may be what the memory was in. */
	if (p->how == END_UNKNOWN && s && supervised_killed_with(s, m->last_ns))
		return 4;
	if (p->how == END_UNKNOWN)
		return volume_short(m) ? 3 : 2;
	return f->root ? 1 : 0;
}

static int read_supervised(
    const struct trace_set *set, const struct feed *feed, struct supervised *out, struct err *err)
{
	struct feed outside = feed_of_trace(set->supervisor);
	const struct trace_facts *sf = outside.facts(outside.self), *f = feed->facts(feed->self);
	struct supervised_of of = {.pid = f->pid,
	    .shift_ns = (int64_t)(sf->start_mono_ns - f->start_mono_ns),
	    .stack_each = supervised_stack_each(feed)};

	return supervised_read(&outside, &of, out, err);
}

/* The one that the rest is about, while others are looked at. */
struct choice {
	struct verdict_result *r;
	struct course **courses; /* of all processes so far */
	bool *victims; /* of each: did the kernel's log name it? */
	struct supervised *now, *best;
	int importance;
	uint64_t refused_ns;
};

/* Of equally important ones who was refused first: what came after may be its doing. */
static bool is_better(const struct choice *c, int importance, uint64_t refused_ns, uint64_t peak)
{
	if (importance != c->importance)
		return importance > c->importance;
	if (refused_ns != c->refused_ns && refused_ns && c->refused_ns)
		return refused_ns < c->refused_ns;
	return peak > c->r->model->peak_bytes;
}

static int read_process(struct choice *c, const struct trace_set *set, size_t i, struct err *err)
{
	struct verdict_result *r = c->r;
	struct feed feed = feed_of_trace(set->images[i]);
	const struct supervised *s = set->supervisor ? c->now : NULL;
	struct model *m;
	uint64_t refused_ns;
	int rc = subject_model(feed, &m, err), importance_now;

	if (rc)
		return rc;
	if (s)
		rc = read_supervised(set, &feed, c->now, err);
	if (!rc && !(c->courses[i] = course_new(m, s, set->images[i])))
		rc = err_set(err, -ENOMEM, "no memory for the verdict");
	if (rc) {
		model_free(m);
		return rc;
	}
	describe(r, &r->tree.processes[i], feed, m, s);
	r->tree.count++;
	importance_now = c->victims[i]
			     ? IMPORTANT
			     : importance(m, &r->tree.processes[i], feed.facts(feed.self), s);
	refused_ns = course_refused_ns(c->courses[i]);
	if (r->model && !is_better(c, importance_now, refused_ns, m->peak_bytes)) {
		model_free(m);
		return 0;
	}
	model_free(r->model);
	r->model = m;
	r->trace = set->images[i];
	r->tree.subject = i;
	c->importance = importance_now;
	c->refused_ns = refused_ns;
	*c->best = *c->now;
	return 0;
}

/* The rest is about that process, with how the other one failed. */
static int move_to(struct choice *c, const struct trace_set *set, size_t to, uint64_t device,
    const struct failure_view *failure, struct err *err)
{
	struct verdict_result *r = c->r;
	struct feed feed = feed_of_trace(set->images[to]);
	uint64_t from_ns = trace_facts(set->images[r->tree.subject])->start_mono_ns;
	struct model *m;
	int rc = set->supervisor ? read_supervised(set, &feed, c->best, err) : 0;

	if (!rc)
		rc = subject_model(feed, &m, err);
	if (rc)
		return rc;
	model_free(r->model);
	r->model = m;
	r->trace = set->images[to];
	r->tree.elsewhere.device = device;
	r->tree.elsewhere.failure = *failure;
	r->tree.elsewhere.failure.pid = r->tree.processes[r->tree.subject].pid;
	r->tree.elsewhere.failure.time_ns =
	    failure->time_ns + from_ns - trace_facts(set->images[to])->start_mono_ns;
	r->tree.subject = to;
	return 0;
}

/* Where a file system in memory is full: what the others have of it, and who it is that filled it.
 */
static int read_volume(struct choice *c, const struct trace_set *set, struct err *err)
{
	struct verdict_result *r = c->r;
	struct failure_view view = {0};
	struct volume_tree tree;
	bool presumed;
	uint64_t device = volume_failed(r->model, r->model->feed.facts(r->model->feed.self),
	    set->supervisor ? c->best : NULL, &view, &presumed);
	int rc;

	if (!device)
		return 0;
	rc = volume_tree(set, r->tree.subject, device, view.time_ns, !presumed, &tree, err);
	if (rc)
		return rc;
	r->tree.siblings_volume = tree.siblings;
	return tree.holder == r->tree.subject ? 0
					      : move_to(c, set, tree.holder, device, &view, err);
}

static int judge_set(struct choice *c, const struct trace_set *set, struct err *err)
{
	struct verdict_result *r = c->r;
	int rc = 0;

	r->frameworks.knowledge = knowledge_open();
	r->frameworks.frames =
	    r->frameworks.knowledge ? framework_frames_new(r->frameworks.knowledge) : NULL;
	if (!r->frameworks.frames)
		return err_set(err, -ENOMEM, "no memory for what is known of frameworks");
	/* Of several, which one it is about is not known before their events are read. */
	if (set->count == 1) {
		struct feed feed = feed_of_trace(set->images[0]);

		framework_look_ahead(r->frameworks.frames, &feed);
	}
	for (size_t i = 0; i < set->count && !rc; i++)
		rc = read_process(c, set, i, err);
	if (rc)
		return rc;
	if (!r->model)
		return err_set(
		    err, -ENODATA, "%s: holds no process", set->path ? set->path : "the set");
	rc = read_volume(c, set, err);
	if (rc)
		return rc;
	r->tree.siblings = tree_siblings(c->courses, r->tree.count, r->tree.subject);
	r->tree.siblings_live =
	    tree_siblings_then(c->courses, r->tree.count, r->tree.subject, r->model->last_ns);
	r->tree.workers =
	    tree_workers(c->courses, r->tree.count, r->tree.subject, r->model->last_ns);
	r->tree.victim = c->victims[r->tree.subject];
	trace_set_damage(set, r->trace, &r->tree.damage);
	rc =
	    subject_judge(r, r->model->feed, set->supervisor ? c->best : NULL, r->tree.victim, err);
	if (!rc && tree_settle(r, c->courses))
		rc = err_set(err, -ENOMEM, "no memory for the processes");
	return rc;
}

int verdict_of_set(const struct trace_set *set, const struct verdict_hints *hints,
    struct verdict_result *out, struct err *err)
{
	struct verdict_result r = {0};
	struct choice c = {.r = &r,
	    .courses = calloc(set->count + 1, sizeof(*c.courses)),
	    .victims = calloc(set->count + 1, sizeof(*c.victims)),
	    .now = calloc(1, sizeof(*c.now)),
	    .best = calloc(1, sizeof(*c.best))};
	int rc;

	r.tree.processes = calloc(set->count + 1, sizeof(*r.tree.processes));
	if (!r.tree.processes || !c.courses || !c.victims || !c.now || !c.best) {
		rc = err_set(err, -ENOMEM, "no memory for the verdict");
	} else {
		victims_find(set, hints, c.victims);
		rc = judge_set(&c, set, err);
	}
	for (size_t i = 0; c.courses && i < set->count; i++)
		course_free(c.courses[i]);
	free(c.courses);
	free(c.victims);
	free(c.now);
	free(c.best);
	if (rc) {
		verdict_fini(&r);
		return rc;
	}
	*out = r;
	return 0;
}

static int judge_feed(
    struct verdict_result *r, struct feed feed, const struct supervised *s, struct err *err)
{
	int rc;

	r->tree.processes = calloc(1, sizeof(*r->tree.processes));
	if (!r->tree.processes)
		return err_set(err, -ENOMEM, "no memory for the verdict");
	rc = subject_model(feed, &r->model, err);
	if (rc)
		return rc;
	describe(r, &r->tree.processes[0], feed, r->model, s);
	r->tree.count = 1;
	return subject_judge(r, feed, s, r->tree.victim, err);
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

	*out = (struct verdict_result){.frameworks.knowledge = of->frameworks.knowledge,
	    .frameworks.frames = of->frameworks.frames,
	    .frameworks.borrowed = true,
	    .tree.victim = of->tree.victim,
	    .tree.damage = of->tree.damage,
	    .tree.siblings = of->tree.siblings,
	    .tree.workers = of->tree.workers};
	rc = judge_feed(out, feed, supervised, err);
	if (rc)
		verdict_fini(out);
	return rc;
}
