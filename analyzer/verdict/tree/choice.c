/* choice.c - see choice.h. All models would be too large to keep: it keeps the best one so far. */
#include "verdict/tree/choice.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "model/space/space.h"
#include "verdict/failure/failure.h"
#include "verdict/failure/volume.h"
#include "verdict/subject.h"
#include "verdict/tree/victim.h"

/* How likely a reader asks about a process. */
enum importance {
	STARTED_BY_ANOTHER,
	STARTED_FIRST,
	END_UNSEEN,
	REFUSED_AND_WENT_ON, /* or a file system was full, and its end was not seen */
	KILLED,
	ENDED_BY_IT, /* refused and ended badly, or named by the kernel's log */
};

/* The processes so far. */
struct candidates {
	struct choice *best;
	const struct trace_set *set;
	struct arena *words;
	bool *victims; /* of each image: the kernel's log names it */
	struct supervised *next; /* of the current process */
	enum importance importance; /* of the best process */
	uint64_t refused_ns; /* of the best process, monotonic; 0: never */
};

static enum importance importance_of(const struct model *m, const struct process *p,
    const struct trace_facts *f, const struct supervised *s)
{
	bool bad =
	    p->how == END_SIGNAL || (p->how == END_EXIT && p->code != 0) || p->how == END_UNKNOWN;

	if (model_failure(m) || spaces_failure(m->spaces))
		return bad ? ENDED_BY_IT : REFUSED_AND_WENT_ON;
	if (p->how == END_SIGNAL && p->code == SIGKILL)
		return KILLED;
	if (p->how == END_SIGNAL && p->code == SIGBUS && m->shm.count)
		return KILLED;
	/* A process that was killed with the started one may have held the memory. */
	if (p->how == END_UNKNOWN && s && supervised_killed_with(s, m->run.last_ns))
		return KILLED;
	if (p->how == END_UNKNOWN)
		return volume_short(m) ? REFUSED_AND_WENT_ON : END_UNSEEN;
	return f->root ? STARTED_FIRST : STARTED_BY_ANOTHER;
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

/* Among equals, prefer the process that was refused first: it may have caused the others'
 * failures. */
static bool is_better(
    const struct candidates *c, enum importance importance, uint64_t refused_ns, uint64_t peak)
{
	if (importance != c->importance)
		return importance > c->importance;
	if (refused_ns != c->refused_ns && refused_ns && c->refused_ns)
		return refused_ns < c->refused_ns;
	return peak > c->best->model->peak.bytes;
}

static int read_process(struct candidates *c, size_t i, struct err *err)
{
	struct choice *best = c->best;
	struct feed feed = feed_of_trace(c->set->images[i]);
	const struct supervised *s = c->set->supervisor ? c->next : NULL;
	struct process *p = &best->tree.processes[i];
	enum importance importance;
	uint64_t refused_ns;
	struct model *m;
	int rc = subject_model(feed, &m, err);

	if (rc)
		return rc;
	if (s)
		rc = read_supervised(c->set, &feed, c->next, err);
	if (!rc && !(best->courses[i] = course_new(m, s, c->set->images[i])))
		rc = err_set(err, -ENOMEM, "no memory for the verdict");
	if (rc) {
		model_free(m);
		return rc;
	}
	*p = tree_process(c->words, feed, m, s);
	best->tree.count++;
	importance = c->victims[i] ? ENDED_BY_IT : importance_of(m, p, feed.facts(feed.self), s);
	refused_ns = course_refused_ns(best->courses[i]);
	if (best->model && !is_better(c, importance, refused_ns, m->peak.bytes)) {
		model_free(m);
		return 0;
	}
	model_free(best->model);
	best->model = m;
	best->trace = c->set->images[i];
	best->tree.subject = i;
	c->importance = importance;
	c->refused_ns = refused_ns;
	if (s)
		*best->supervised = *s;
	return 0;
}

/* Make process `to` the subject; `failure` is the failure of the subject so far. */
static int move_to(struct candidates *c, size_t to, uint64_t device,
    const struct failure_view *failure, struct err *err)
{
	struct choice *best = c->best;
	struct process_tree *tree = &best->tree;
	struct feed feed = feed_of_trace(c->set->images[to]);
	uint64_t from_ns = trace_facts(best->trace)->start_mono_ns;
	struct model *m;
	int rc = best->supervised ? read_supervised(c->set, &feed, best->supervised, err) : 0;

	if (!rc)
		rc = subject_model(feed, &m, err);
	if (rc)
		return rc;
	model_free(best->model);
	best->model = m;
	best->trace = c->set->images[to];
	tree->elsewhere.device = device;
	tree->elsewhere.failure = *failure;
	tree->elsewhere.failure.pid = tree->processes[tree->subject].pid;
	tree->elsewhere.failure.time_ns =
	    failure->time_ns + from_ns - trace_facts(best->trace)->start_mono_ns;
	tree->subject = to;
	return 0;
}

/* If a file system in memory is full, the report is about the process that filled it. */
static int follow_volume(struct candidates *c, struct err *err)
{
	struct choice *best = c->best;
	struct process_tree *tree = &best->tree;
	struct failure_view view = {0};
	struct volume_tree holders;
	bool presumed;
	uint64_t device = volume_failed(best->model, best->supervised, &view, &presumed);
	const struct volume_of of = {device, tree->subject, view.time_ns, !presumed};
	int rc;

	if (!device)
		return 0;
	rc = volume_tree(c->set, &of, &holders, err);
	if (rc)
		return rc;
	tree->siblings_volume = holders.siblings;
	return holders.holder == tree->subject ? 0 : move_to(c, holders.holder, device, &view, err);
}

static int choose(struct candidates *c, struct err *err)
{
	struct choice *best = c->best;
	struct process_tree *tree = &best->tree;
	int rc = 0;

	for (size_t i = 0; i < c->set->count && !rc; i++)
		rc = read_process(c, i, err);
	if (rc)
		return rc;
	if (!best->model)
		return err_set(
		    err, -ENODATA, "%s: holds no process", c->set->path ? c->set->path : "the set");
	rc = follow_volume(c, err);
	if (rc)
		return rc;
	tree->siblings = tree_siblings(best->courses, tree->count, tree->subject);
	tree->siblings_live =
	    tree_siblings_live(best->courses, tree->count, tree->subject, best->model->run.last_ns);
	tree->workers =
	    tree_workers(best->courses, tree->count, tree->subject, best->model->run.last_ns);
	tree->victim = c->victims[tree->subject];
	trace_set_damage(c->set, best->trace, &tree->damage);
	return 0;
}

int choice_make(struct choice *c, const struct trace_set *set, const struct verdict_hints *hints,
    struct arena *words, struct err *err)
{
	struct candidates candidates = {.best = c,
	    .set = set,
	    .words = words,
	    .victims = calloc(set->count + 1, sizeof(*candidates.victims))};
	int rc;

	*c = (struct choice){.tree.processes = calloc(set->count + 1, sizeof(*c->tree.processes)),
	    .courses = calloc(set->count + 1, sizeof(struct course *))};
	if (set->supervisor) {
		candidates.next = calloc(1, sizeof(*candidates.next));
		c->supervised = calloc(1, sizeof(*c->supervised));
	}
	if (!c->tree.processes || !c->courses || !candidates.victims ||
	    (set->supervisor && (!candidates.next || !c->supervised))) {
		rc = err_set(err, -ENOMEM, "no memory for the verdict");
	} else {
		victim_find(set, hints, candidates.victims);
		rc = choose(&candidates, err);
	}
	free(candidates.victims);
	free(candidates.next);
	return rc;
}

void choice_fini(struct choice *c)
{
	for (size_t i = 0; c->courses && i < c->tree.count; i++)
		course_free(c->courses[i]);
	free(c->courses);
	free(c->supervised);
}
