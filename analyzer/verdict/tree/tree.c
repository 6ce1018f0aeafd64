#include "verdict/tree/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/space/space.h"
#include "util/num.h"
#include "util/text/str.h"
#include "util/tuned.h"
#include "verdict/failure/failure.h"

TUNED(uint64_t, WORKER_PART, 4,
    "workers of one pool have the same libraries and model resident: an idle one at least a "
    "quarter of a busy one, a helper of the same program far less");
TUNED(uint64_t, SAME_KILL_NS, 50000000,
    "the killer strikes several at a time, some milliseconds apart");

/* The host, and the drivers' memory, which contains PyTorch's blocks. */
#define COURSE_SPACES (1 + 2 * DEVICES_MAX)

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

struct process tree_process(
    struct arena *words, struct feed feed, const struct model *m, const struct supervised *s)
{
	const struct trace_facts *f = feed.facts(feed.self);
	struct ending end = failure_ending(m, s);
	uint64_t last = f->last_ns > m->run.last_ns ? f->last_ns : m->run.last_ns;
	struct timespec now;

	/* The process lived on after its last event, as the supervisor saw. */
	if (s && s->ended && s->ended_ns > last)
		last = s->ended_ns;
	if (end.how == END_RUNNING && clock_gettime(CLOCK_MONOTONIC, &now) == 0) {
		uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;

		if (ns > f->start_mono_ns && ns - f->start_mono_ns > last)
			last = ns - f->start_mono_ns;
	}
	return (struct process){.pid = f->pid,
	    .ppid = f->ppid,
	    .cmdline = command_line(words, f),
	    .trace = f->path ? f->path : "",
	    .events = m->run.events,
	    .dropped = f->dropped_total + m->recording.lost,
	    .start_real_ns = f->start_real_ns,
	    .seconds = (double)last / 1e9,
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

struct course *course_new(
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

void course_free(struct course *course)
{
	for (size_t i = 0; course && i < course->count; i++)
		free(course->spaces[i]);
	free(course);
}

uint64_t course_refused_ns(const struct course *course)
{
	return course->refused_ns;
}

static uint64_t resident_at(const struct timeline *t, uint64_t time_ns)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < t->used && (uint64_t)i << t->shift <= time_ns; i++)
		if (t->periods[i].rss)
			last = t->periods[i].rss;
	return last;
}

uint64_t tree_siblings(struct course *const *courses, size_t count, size_t subject)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		const struct timeline *t = &courses[i]->resident;
		uint64_t most = 0;

		for (uint32_t k = 0; k < t->used; k++)
			if (t->periods[k].rss > most)
				most = t->periods[k].rss;
		if (courses[i]->pid != courses[subject]->pid)
			sum += most;
	}
	return sum;
}

uint64_t tree_siblings_live(
    struct course *const *courses, size_t count, size_t subject, uint64_t last_ns)
{
	uint64_t moment = courses[subject]->start_ns + last_ns, sum = 0;

	for (size_t i = 0; i < count; i++) {
		const struct course *c = courses[i];

		if (c->pid != courses[subject]->pid && c->count && moment >= c->start_ns &&
		    moment <= c->end_ns)
			sum += timeline_live(&c->spaces[0]->live, moment - c->start_ns);
	}
	return sum;
}

/* Return resident bytes, from the supervisor or the process itself, whichever is more. */
static uint64_t resident_of(const struct course *c, uint64_t moment_ns)
{
	uint64_t at = num_least(moment_ns, c->end_ns) - c->start_ns;
	uint64_t outside = resident_at(&c->resident, at);

	return c->count ? num_most(outside, resident_at(&c->spaces[0]->live, at)) : outside;
}

struct scene_workers tree_workers(
    struct course *const *courses, size_t count, size_t subject, uint64_t last_ns)
{
	const struct course *own = courses[subject];
	uint64_t moment = own->start_ns + last_ns;
	uint64_t least = resident_of(own, moment) / WORKER_PART;
	struct scene_workers workers = {0};

	for (size_t i = 0; i < count; i++) {
		const struct course *c = courses[i];
		uint64_t resident;

		if (c->pid == own->pid || c->ppid != own->ppid || !str_same(c->exe, own->exe) ||
		    moment < c->start_ns || moment > num_sum(c->end_ns, SAME_KILL_NS))
			continue;
		resident = resident_of(c, moment);
		if (!resident || resident < least)
			continue;
		workers.count++;
		workers.bytes += resident;
	}
	return workers;
}

static int settle(
    struct process *p, const struct course *c, uint64_t moment_ns, struct arena *words)
{
	bool there = moment_ns >= c->start_ns && moment_ns <= c->end_ns;
	uint64_t at = there ? moment_ns - c->start_ns : 0;

	p->refused_ns = c->refused_ns ? c->refused_ns - c->start_ns : 0;
	p->late_ns = c->refused_ns > moment_ns ? c->refused_ns - moment_ns : 0;
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
