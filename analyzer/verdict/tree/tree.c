#include "verdict/tree/tree.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/space/space.h"
#include "util/num.h"
#include "util/text/str.h"
#include "util/tuned.h"
#include "verdict/failure/failure.h"
#include "verdict/failure/volume.h"
#include "verdict/subject.h"

TUNED(uint64_t, WORKER_PART, 4,
    "workers of one pool have the same libraries and model resident: an idle one at least a "
    "quarter of a busy one, a helper of the same program far less");
TUNED(uint64_t, SAME_KILL_NS, 50000000,
    "the killer strikes several at a time, some milliseconds apart");

/* The host, and the drivers' memory, which contains PyTorch's blocks. */
#define COURSE_SPACES (1 + 2 * DEVICES_MAX)

/* A process's live bytes in each space, over its run. */
struct course {
	uint32_t pid, ppid;
	const char *exe; /* the trace's, or NULL */
	uint64_t start_ns, end_ns, refused_ns; /* monotonic; end: UINT64_MAX while it runs */
	struct timeline resident;
	struct course_space {
		char name[32];
		uint32_t gpu;
		uint64_t peak;
		struct timeline live;
	} * spaces[COURSE_SPACES];
	size_t count;
};

static const char *command_line(struct arena *words, const struct trace_facts *f)
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
	text = s.failed ? NULL : arena_copy(words, str_text(&s), s.length);
	str_free(&s);
	return text ? text : "";
}

/* A fact of the process by its key in the trace, kept; "": there is none. */
static const char *recorded(struct arena *words, struct feed feed, const char *key)
{
	const char *value = feed.info(feed.self, key),
		   *kept = value ? arena_copy(words, value, strlen(value)) : NULL;

	return kept ? kept : "";
}

struct process tree_process(
    struct arena *words, struct feed feed, const struct model *m, const struct supervised *s)
{
	const struct trace_facts *f = feed.facts(feed.self);
	struct ending end = failure_ending(m, s);
	uint64_t last = num_most(f->last_ns, m->run.last_ns);
	struct timespec now;

	/* The process lived on after its last event, as the supervisor saw. */
	if (s && s->ended)
		last = num_most(last, s->ended_ns);
	if (end.how == END_RUNNING && clock_gettime(CLOCK_MONOTONIC, &now) == 0) {
		uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;

		last = num_most(last, num_less(ns, f->start_mono_ns));
	}
	return (struct process){.pid = f->pid,
	    .ppid = f->ppid,
	    .cmdline = command_line(words, f),
	    .trace = f->path ? f->path : "",
	    .host = recorded(words, feed, "host"),
	    .labels = recorded(words, feed, "labels"),
	    .events = m->run.events,
	    .dropped = f->dropped_total + m->recording.lost,
	    .start_real_ns = f->start_real_ns,
	    .seconds = (double)last / 1e9,
	    .attached = m->base.attached,
	    .ran_ns = m->base.ran_ns,
	    .how = end.how,
	    .code = end.code};
}

static int add(struct course *c, const char *name, uint32_t gpu, const struct model *m)
{
	struct course_space *to;

	if (c->count == COURSE_SPACES)
		return 0;
	to = malloc(sizeof(*to));
	if (!to)
		return -ENOMEM;
	*to = (struct course_space){.gpu = gpu, .peak = m->peak.bytes, .live = m->timeline};
	strncpy(to->name, name, sizeof(to->name) - 1);
	c->spaces[c->count++] = to;
	return 0;
}

/* Return when the supervisor last saw the process, which records nothing while it waits. */
static uint64_t last_seen_ns(const struct supervised *s)
{
	return s->last.known[TRACE_LEVEL_RSS] ? s->last.time_ns[TRACE_LEVEL_RSS] : 0;
}

static uint64_t refused_ns(const struct model *m)
{
	const struct failure *host = model_failure(m);
	const struct device_failure *device = spaces_failure(m->spaces);
	uint64_t at = device ? device->time_ns : UINT64_MAX;

	if (host && host->time_ns < at)
		at = host->time_ns;
	return at == UINT64_MAX ? 0 : at;
}

static void course_free(struct course *course)
{
	for (size_t i = 0; course && i < course->count; i++)
		free(course->spaces[i]);
	free(course);
}

/* Keep a process's course. `supervised` may be NULL. NULL: no memory. */
static struct course *course_new(
    const struct model *m, const struct supervised *supervised, const struct trace *t)
{
	const struct trace_facts *f = trace_facts(t);
	struct course *c = calloc(1, sizeof(*c));
	uint64_t refused = refused_ns(m);
	int rc;

	if (!c)
		return NULL;
	c->pid = f->pid;
	c->ppid = f->ppid;
	c->exe = f->exe;
	c->start_ns = f->start_mono_ns;
	c->end_ns = f->running ? UINT64_MAX : c->start_ns + f->last_ns;
	c->refused_ns = refused ? c->start_ns + refused : 0;
	if (supervised) {
		c->resident = supervised->resident;
		if (supervised->ended)
			c->end_ns = c->start_ns + supervised->ended_ns;
		else if (f->end_how == TRACE_END_NONE && last_seen_ns(supervised) > f->last_ns &&
			 !f->running)
			c->end_ns = c->start_ns + last_seen_ns(supervised);
	}
	rc = add(c, "host", GPU_NONE, m);
	for (uint32_t i = 0; m->spaces && !rc && i < m->spaces->count; i++) {
		const struct space *s = m->spaces->list[i];

		if (s->kind == SPACE_CUDA || s->kind == SPACE_POOL)
			rc = add(c, s->name, trace_gpu(t, s->device), s->model);
	}
	if (!rc)
		return c;
	course_free(c);
	return NULL;
}

static uint64_t resident_at(const struct timeline *t, uint64_t time_ns)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < t->used && (uint64_t)i << t->shift <= time_ns; i++)
		if (t->periods[i].rss)
			last = t->periods[i].rss;
	return last;
}

/* Return resident bytes, from the supervisor or the process itself, whichever is more. */
static uint64_t resident_of(const struct course *c, uint64_t moment_ns)
{
	uint64_t at = num_least(moment_ns, c->end_ns) - c->start_ns;
	uint64_t outside = resident_at(&c->resident, at);

	return c->count ? num_most(outside, resident_at(&c->spaces[0]->live, at)) : outside;
}

/* Sum up what the processes beside the subject held. Workers of the subject's pool are of the same
 * parent and program, with about as much resident memory. */
static void read_others(struct choice *best)
{
	struct process_tree *tree = &best->tree;
	const struct course *own = best->courses[tree->subject];
	uint64_t moment = own->start_ns + best->model->run.last_ns;
	uint64_t least = resident_of(own, moment) / WORKER_PART;

	for (size_t i = 0; i < tree->count; i++) {
		const struct course *c = best->courses[i];
		uint64_t most = 0, resident;

		if (c->pid == own->pid)
			continue;
		for (uint32_t k = 0; k < c->resident.used; k++)
			most = num_most(most, c->resident.periods[k].rss);
		/* At least their sum at any moment. */
		tree->siblings += most;
		if (moment < c->start_ns)
			continue;
		/* At least the resident bytes, since some pages may be untouched. */
		if (c->count && moment <= c->end_ns)
			tree->siblings_live +=
			    timeline_live(&c->spaces[0]->live, moment - c->start_ns);
		if (c->ppid != own->ppid || !str_same(c->exe, own->exe) ||
		    moment > num_sum(c->end_ns, SAME_KILL_NS))
			continue;
		resident = resident_of(c, moment);
		if (!resident || resident < least)
			continue;
		tree->workers.count++;
		tree->workers.bytes += resident;
	}
}

/* Sum up what the other processes held of each GPU when one refused the subject. */
static void read_gpus(struct choice *best)
{
	const struct device_failure *f = spaces_failure(best->model->spaces);
	const struct course *own = best->courses[best->tree.subject];
	uint64_t moment = f ? own->start_ns + f->time_ns : 0;

	for (size_t i = 0; f && i < best->tree.count; i++) {
		const struct course *c = best->courses[i];

		if (c->pid == own->pid || moment < c->start_ns || moment > c->end_ns)
			continue;
		for (size_t k = 0; k < c->count; k++)
			if (c->spaces[k]->gpu < DEVICES_MAX)
				best->tree.gpu_others[c->spaces[k]->gpu] +=
				    timeline_live(&c->spaces[k]->live, moment - c->start_ns);
	}
}

static int settle(
    struct process *p, const struct course *c, uint64_t moment_ns, struct arena *words)
{
	bool there = moment_ns >= c->start_ns && moment_ns <= c->end_ns;
	uint64_t at = there ? moment_ns - c->start_ns : 0;

	p->refused_ns = c->refused_ns ? c->refused_ns - c->start_ns : 0;
	p->late_ns = num_less(c->refused_ns, moment_ns);
	p->resident = there ? resident_at(&c->resident, at) : 0;
	p->memory = arena_alloc(words, c->count * sizeof(*p->memory));
	if (!p->memory)
		return -ENOMEM;
	p->memory_count = c->count;
	for (size_t i = 0; i < c->count; i++) {
		const struct course_space *s = c->spaces[i];

		p->memory[i] =
		    (struct process_memory){.space = arena_copy(words, s->name, strlen(s->name)),
			.gpu = s->gpu,
			.held = there ? timeline_live(&s->live, at) : 0,
			.peak = s->peak};
		if (!p->memory[i].space)
			return -ENOMEM;
	}
	return 0;
}

/* A process loses its memory when it executes another program. */
static void end_at_exec(struct course *const *courses, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++) {
			struct course *c = courses[i];
			uint64_t start = courses[k]->start_ns;

			if (courses[k]->pid == c->pid && start > c->start_ns && start <= c->end_ns)
				c->end_ns = start - 1;
		}
}

int tree_settle(struct process_tree *tree, struct course *const *courses, uint64_t moment_ns,
    struct arena *words)
{
	uint64_t moment = courses[tree->subject]->start_ns + moment_ns;
	int rc = 0;

	end_at_exec(courses, tree->count);
	for (size_t i = 0; i < tree->count && !rc; i++)
		rc = settle(&tree->processes[i], courses[i], moment, words);
	return rc;
}

#define COMM_BYTES 15 /* TASK_COMM_LEN without its NUL */

static bool may_be_killed(const struct trace_facts *f)
{
	return (f->end_how == TRACE_END_SIGNAL && f->end_code == SIGKILL) ||
	       (f->end_how == TRACE_END_NONE && !f->running);
}

static bool has_name(const char *path, const char *comm)
{
	const char *name = str_base_name(path);

	return name && *comm && strncmp(name, comm, COMM_BYTES) == 0;
}

static bool is_named(const struct trace_facts *f, const struct log_victim *v)
{
	return has_name(f->exe, v->comm) || (f->argv && has_name(f->argv[0], v->comm));
}

static bool by_pid(const struct trace_set *set, const struct verdict_hints *hints, bool *victim)
{
	bool any = false;

	for (size_t i = 0; i < set->count; i++) {
		const struct trace_facts *f = trace_facts(set->images[i]);

		for (size_t k = 0; k < hints->victim_count; k++)
			victim[i] |= hints->victims[k].pid == f->pid && may_be_killed(f);
		any |= victim[i];
	}
	return any;
}

void victim_find(const struct trace_set *set, const struct verdict_hints *hints, bool *victim)
{
	size_t killed = 0, only = 0;

	if (!hints || by_pid(set, hints, victim))
		return;
	for (size_t i = 0; i < set->count; i++)
		if (may_be_killed(trace_facts(set->images[i]))) {
			only = i;
			killed++;
		}
	if (killed != 1)
		return;
	for (size_t k = 0; k < hints->victim_count; k++)
		victim[only] |= is_named(trace_facts(set->images[only]), &hints->victims[k]);
}

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
	size_t life, best_life; /* of the current process; of the best one */
	uint64_t over_ns; /* when the last of those so far ended, monotonic */
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

/* A later run whose end was not seen is a tool's, such as a shell that became an unrecorded
 * program, and no next start of the server, if it held less than such a part of what the server
 * did: the limit that the server met once, it meets again. */
#define TOOL_PART 4u

/* Nobody supervised the directory, and all others had ended when this process began: it is another
 * run, as the next start of a container in the same volume. */
static void count_life(struct candidates *c, const struct trace_facts *f, const struct model *m)
{
	if (!c->set->supervisor && c->over_ns && f->start_mono_ns > c->over_ns)
		c->life++;
	c->over_ns = num_most(c->over_ns, f->start_mono_ns + m->run.last_ns);
}

/* A report is about the latest run that failed. Among equals, prefer the process that was refused
 * first: it may have caused the others' failures. */
static bool is_better(
    const struct candidates *c, enum importance importance, uint64_t refused_ns, uint64_t peak)
{
	if (c->life != c->best_life && importance >= KILLED)
		return true;
	if (c->life != c->best_life && importance >= END_UNSEEN)
		return peak > c->best->model->peak.bytes / TOOL_PART;
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
	refused_ns = best->courses[i]->refused_ns;
	count_life(c, feed.facts(feed.self), m);
	if (best->model && !is_better(c, importance, refused_ns, m->peak.bytes)) {
		model_free(m);
		return 0;
	}
	model_free(best->model);
	best->model = m;
	best->trace = c->set->images[i];
	best->tree.subject = i;
	c->importance = importance;
	c->best_life = c->life;
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
	tree->unmapped_volume = holders.unmapped;
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
	read_others(best);
	read_gpus(best);
	tree->watched = c->set->supervisor != NULL;
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
