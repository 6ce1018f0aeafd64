#include "verdict/failure/volume.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "util/num.h"
#include "util/tuned.h"
#include "util/vec.h"
#include "verdict/failure/failure.h"
#include "verdict/subject.h"

TUNED(uint64_t, REQUEST_PART, 8,
    "another process may free a little between the refusal and the look at the file system");
TUNED(uint64_t, HOLDS_TIMES, 2,
    "a process with twice what the subject holds is the larger part, whatever else there is");

TUNED(uint64_t, LEFT_PART, 8,
    "a file is as large as its mapping, to a page; a program that removes its files made many "
    "more");

#define PAGE_BYTES 4096u /* unless the recording has another size */

/* Of the volumes that may have failed, return the one seen last. */
static const struct shm_volume *shortest(
    const struct model *m, bool (*is_it)(const struct shm_volume *))
{
	const struct shm_volume *best = NULL;

	for (uint32_t i = 0; i < m->shm.count; i++) {
		const struct shm_volume *v = &m->shm.list[i];

		if (v->mapped && is_it(v) && (!best || v->time_ns > best->time_ns))
			best = v;
	}
	return best;
}

bool volume_short(const struct model *m)
{
	return shortest(m, shm_is_exceeded) != NULL;
}

static uint64_t refused_there(
    const struct model *m, const struct failure *refused, struct failure_view *out)
{
	uint64_t device, total, free;

	if (refused->api != TRACE_API_FALLOCATE ||
	    !levels_get(&m->measured.at_failure, TRACE_LEVEL_SHM_DEVICE, &device) ||
	    !levels_get(&m->measured.at_failure, TRACE_LEVEL_SHM_TOTAL, &total) ||
	    !levels_get(&m->measured.at_failure, TRACE_LEVEL_SHM_FREE, &free))
		return 0;
	/* The request was for another file system, or space was freed there since. */
	if (free > total || free > refused->size + refused->size / REQUEST_PART)
		return 0;
	out->kind = FAILURE_HOST_ALLOC;
	out->time_ns = refused->time_ns;
	out->requested_bytes = refused->size;
	out->limit = LIMIT_SHM;
	out->limit_bytes = total;
	out->usage_bytes = total - free;
	return device;
}

uint64_t volume_failed(
    const struct model *m, const struct supervised *s, struct failure_view *out, bool *presumed)
{
	const struct failure *refused = model_failure(m);
	struct ending end = failure_ending(m, s);
	bool bus = end.how == END_SIGNAL && end.code == SIGBUS;
	const struct shm_volume *v;

	*presumed = false;
	if (refused)
		return refused_there(m, refused, out);
	/* A full file system does not explain a worker that another process ends when all is done:
	 * it must have been exceeded. */
	v = shortest(m, bus			 ? shm_is_short
			: end.how == END_UNKNOWN ? shm_is_exceeded
						 : shm_is_full);
	*presumed = end.how == END_EXIT && end.code;
	if (!v || !(bus || end.how == END_UNKNOWN || *presumed))
		return 0;
	out->limit = LIMIT_SHM;
	out->limit_bytes = v->total;
	out->time_ns = m->run.last_ns;
	if (*presumed) {
		out->usage_bytes = v->total - v->free;
		return v->device;
	}
	/* Not one page was left. */
	out->kind = FAILURE_BUS;
	out->usage_bytes = v->total;
	if (!feed_number(&m->feed, "page.size", &out->requested_bytes))
		out->requested_bytes = PAGE_BYTES;
	out->kill_evidence =
	    bus ? "killed by SIGBUS, with less free in the file system of a mapped file than may "
		  "have been written to it"
		: "ended without a word, with less free in the file system of a mapped file than "
		  "may have been written to it, as who is killed by SIGBUS for that";
	return v->device;
}

static const char *directory_of(struct verdict_result *r, const char *name)
{
	const char *slash = name ? strrchr(name, '/') : NULL;

	/* This is its usual name, whatever directories it has. */
	if (name && strncmp(name, "/dev/shm/", 9) == 0)
		return "/dev/shm";
	return slash && slash != name ? arena_copy(&r->arena, name, (size_t)(slash - name)) : NULL;
}

int volume_enter(struct verdict_result *r, struct feed *feed, uint64_t device, uint64_t until_ns,
    struct err *err)
{
	const struct shm_volume *seen = shm_find(&r->model->shm, device);
	struct volume_view *v = calloc(1, sizeof(*v));
	struct model *m;
	int rc;

	if (!v)
		return err_set(err, -ENOMEM, "no memory for the verdict");
	v->device = device;
	v->siblings = r->tree.siblings_volume;
	v->directory = directory_of(r, seen ? seen->name : NULL);
	shm_feed_init(&v->feed, *feed, device);
	v->feed.until_ns = until_ns;
	rc = subject_model(shm_feed_of(&v->feed), &m, err);
	if (rc) {
		shm_feed_fini(&v->feed);
		free(v);
		return rc;
	}
	v->whole = r->model;
	r->model = m;
	r->volume = v;
	*feed = m->feed;
	return 0;
}

void volume_leave(struct verdict_result *r, struct feed *feed)
{
	struct volume_view *v = r->volume;

	model_free(r->model);
	r->model = v->whole;
	v->whole = NULL;
	r->volume = NULL;
	*feed = v->feed.below;
	volume_free(v);
}

int volume_work(struct volume_view *v, enum moment moment, struct scene_work *out, struct err *err)
{
	int rc = v->work ? 0 : callsites_new(v->whole, moment, &v->work, err);

	*out = (struct scene_work){v->whole, v->work};
	return rc;
}

void volume_free(struct volume_view *v)
{
	if (!v)
		return;
	callsites_free(v->work);
	model_free(v->whole);
	shm_feed_fini(&v->feed);
	free(v);
}

struct mapped_file {
	uint64_t number, bytes;
	size_t process;
};
struct mapped_files {
	VEC(struct mapped_file) list, ever; /* mapped then; at any time before */
	size_t process;
	bool failed;
};

static void on_mapped(void *arg, const struct range *r)
{
	struct mapped_files *f = arg;

	f->failed |=
	    vec_push(&f->list, (struct mapped_file){r->serial, r->end - r->start, f->process}) != 0;
}

/* Read the files mapped at `until_ns` of the process's own clock. */
static int read_mapped(
    struct feed feed, uint64_t device, uint64_t until_ns, struct mapped_files *out, struct err *err)
{
	struct shm_feed of;
	struct feed there;
	struct event e;
	bool gone = false;
	int rc;

	shm_feed_init(&of, feed, device);
	of.until_ns = until_ns;
	there = shm_feed_of(&of);
	rc = there.rewind(there.self, err);
	while (!rc && (rc = there.next(there.self, &e, err)) == 1) {
		gone |= e.kind == EV_EXIT;
		rc = 0;
		if (e.kind == EV_MAP && event_level_value(&e, TRACE_LEVEL_SHM_FILE))
			out->failed |=
			    vec_push(&out->ever,
				(struct mapped_file){event_level_value(&e, TRACE_LEVEL_SHM_FILE),
				    e.size, out->process}) != 0;
	}
	if (!rc && !gone)
		ranges_each(&of.mapped, on_mapped, out);
	shm_feed_fini(&of);
	if (!rc && out->failed)
		rc = err_set(err, -ENOMEM, "no memory for what is mapped");
	return rc;
}

static int by_number(const void *a, const void *b)
{
	const struct mapped_file *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* Return the bytes that others have mapped: each file once, without those of `process`. */
static uint64_t sum_others(struct mapped_files *f, size_t process)
{
	uint64_t sum = 0;

	if (f->list.count)
		qsort(f->list.items, f->list.count, sizeof(*f->list.items), by_number);
	for (size_t i = 0, next; i < f->list.count; i = next) {
		uint64_t most = 0;
		bool own = false;

		for (next = i;
		     next < f->list.count && f->list.items[next].number == f->list.items[i].number;
		     next++) {
			most = num_most(most, f->list.items[next].bytes);
			own |= f->list.items[next].process == process;
		}
		sum += own ? 0 : most;
	}
	return sum;
}

static bool is_mapped(const struct mapped_files *f, uint64_t number)
{
	for (size_t i = 0; i < f->list.count; i++)
		if (f->list.items[i].number == number)
			return true;
	return false;
}

/* Return the bytes of files that were mapped before, and are not now: each file once. */
static uint64_t sum_unmapped(struct mapped_files *f)
{
	uint64_t sum = 0;

	if (f->ever.count)
		qsort(f->ever.items, f->ever.count, sizeof(*f->ever.items), by_number);
	for (size_t i = 0, next; i < f->ever.count; i = next) {
		uint64_t most = 0;

		for (next = i;
		     next < f->ever.count && f->ever.items[next].number == f->ever.items[i].number;
		     next++)
			most = num_most(most, f->ever.items[next].bytes);
		sum += is_mapped(f, f->ever.items[i].number) ? 0 : most;
	}
	return sum;
}

static uint64_t sum_of(const struct mapped_files *f, size_t process)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < f->list.count; i++)
		sum += f->list.items[i].process == process ? f->list.items[i].bytes : 0;
	return sum;
}

int volume_tree(const struct trace_set *set, const struct volume_of *of, struct volume_tree *out,
    struct err *err)
{
	const struct trace_facts *self = trace_facts(set->images[of->subject]);
	uint64_t then = self->start_mono_ns + of->moment_ns, most;
	struct mapped_files files = {0};
	size_t holder = of->subject;
	int rc = 0;

	for (size_t i = 0; i < set->count && !rc; i++) {
		const struct trace_facts *f = trace_facts(set->images[i]);

		/* A process loses its mappings when it executes another program. */
		if ((i != of->subject && f->pid == self->pid) || f->start_mono_ns > then)
			continue;
		files.process = i;
		rc = read_mapped(feed_of_trace(set->images[i]), of->device, then - f->start_mono_ns,
		    &files, err);
	}
	most = HOLDS_TIMES * sum_of(&files, of->subject);
	for (size_t i = 0; i < set->count && of->may_move; i++) {
		if (i == of->subject || sum_of(&files, i) <= most)
			continue;
		most = sum_of(&files, i);
		holder = i;
	}
	if (!rc)
		*out =
		    (struct volume_tree){holder, sum_others(&files, holder), sum_unmapped(&files)};
	vec_free(&files.list);
	vec_free(&files.ever);
	return rc;
}

struct volume_shares volume_shares(const struct verdict_result *r)
{
	const struct shm_volume *v = shm_find(&r->model->shm, r->volume->device);
	uint64_t used = r->failure.usage_bytes;
	struct volume_shares s;

	/* Bytes from before the process are others'. The rest is its own, if mapped. */
	s.own = num_least(r->callsites->map_bytes, num_less(used, v ? v->others : 0));
	s.siblings = num_least(r->volume->siblings, used - s.own);
	s.files = used - s.own - s.siblings;
	/* If each file that is not mapped any more still takes its bytes, none was removed. */
	s.left = num_about(s.files, r->tree.unmapped_volume, LEFT_PART) ? s.files : 0;
	return s;
}
