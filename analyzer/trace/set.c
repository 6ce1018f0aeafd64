/*
 * set.c - a directory of traces, or the one that was named: opens them, orders them, and lets the
 * supervisor's file say how its children ended.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "trace/reader.h"
#include "util/note.h"
#include "whyoom/trace.h"

#define SUFFIX ".whyoom"

static int by_start(const void *a, const void *b)
{
	const struct trace_facts *x = &(*(struct trace *const *)a)->facts;
	const struct trace_facts *y = &(*(struct trace *const *)b)->facts;

	if (x->start_real_ns != y->start_real_ns)
		return x->start_real_ns < y->start_real_ns ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->image > y->image) - (x->image < y->image);
}

static bool is_trace_name(const char *name)
{
	size_t n = strlen(name), m = strlen(SUFFIX);

	return n > m && name[0] != '.' && !strcmp(name + n - m, SUFFIX);
}

/* The last image of a pid, among those that began before `real_ns`. */
static struct trace *image_of(const struct trace_set *set, uint32_t pid, uint64_t real_ns)
{
	for (size_t i = set->count; i-- > 0;)
		if (set->images[i]->facts.pid == pid &&
		    set->images[i]->facts.start_real_ns <= real_ns)
			return set->images[i];
	return NULL;
}

static void see_ends(struct trace_set *set)
{
	struct trace *s = set->supervisor;
	struct event event;
	struct trace *image;

	if (s) {
		/* A supervisor's file that breaks off has said all that it can. */
		while (trace_next(s, &event, NULL) > 0) {
			if (event.kind != EV_CHILD_END)
				continue;
			image = image_of(
			    set, event.u.child.pid, s->facts.start_real_ns + event.time_ns);
			if (image)
				trace_see_child_end(image, event.u.child.how, event.u.child.code);
		}
		trace_rewind(s, NULL);
		s->facts.running = trace_is_running(s);
		source_rest(&s->source);
	}
	for (size_t i = 0; i < set->count; i++) {
		set->images[i]->facts.running = trace_is_running(set->images[i]);
		if (s)
			outside_set(set->images[i], s);
	}
}

static int add(struct trace_set *set, size_t *capacity, struct trace *t)
{
	int r;

	if (t->facts.mode == TRACE_MODE_SUPERVISOR && !set->supervisor) {
		set->supervisor = t;
		return 0;
	}
	if (set->count == *capacity) {
		r = vec_grow((void **)&set->images, capacity, set->count + 1, sizeof(*set->images));
		if (r)
			return r;
	}
	set->images[set->count++] = t;
	return 0;
}

static int open_directory(DIR *dir, struct trace_set *set, struct err *err)
{
	struct err first = {""}, this;
	size_t capacity = 0, refused = 0;
	struct dirent *entry;
	int r = 0, first_code = 0;

	while (!r && (entry = readdir(dir))) {
		struct trace *t = NULL;
		char *path;

		if (!is_trace_name(entry->d_name))
			continue;
		path = malloc(strlen(set->path) + strlen(entry->d_name) + 2);
		if (!path)
			return err_set(err, -ENOMEM, "%s: out of memory", set->path);
		strcpy(path, set->path);
		if (path[strlen(path) - 1] != '/')
			strcat(path, "/");
		strcat(path, entry->d_name);
		r = trace_open(path, &t, &this);
		free(path);
		if (r == -ENOMEM) {
			*err = this;
		} else if (r) {
			if (!refused++) {
				first = this;
				first_code = r;
			} else {
				note("left out: %s", this.text);
			}
			r = 0;
		} else {
			r = add(set, &capacity, t);
			if (r) {
				trace_close(t);
				err_set(err, r, "%s: out of memory", set->path);
			}
		}
	}
	if (r)
		return r;
	if (!set->count && !set->supervisor) {
		if (refused == 1)
			return err_set(err, first_code, "%s", first.text);
		if (refused)
			return err_set(err, first_code, "%.200s; so are %zu more files there",
			    first.text, refused - 1);
		return err_set(err, -ENOENT,
		    "%s: no traces in this directory (files named PID.IMAGE.whyoom): did the "
		    "program run "
		    "under whyoom, and is this the directory that it named?",
		    set->path);
	}
	if (refused)
		note("left out: %s", first.text);
	return 0;
}

int trace_set_open(const char *path, struct trace_set *out, struct err *err)
{
	struct trace_set set = {0};
	struct trace *t = NULL;
	size_t capacity = 0;
	struct stat st;
	DIR *dir;
	int r;

	set.path = *path ? strdup(path) : strdup(".");
	if (!set.path)
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	if (!stat(set.path, &st) && S_ISDIR(st.st_mode)) {
		dir = opendir(set.path);
		if (!dir) {
			r = -errno;
			err_set(err, r, "%s: %s", set.path, strerror(-r));
			goto out;
		}
		r = open_directory(dir, &set, err);
		closedir(dir);
	} else {
		r = trace_open(set.path, &t, err);
		if (!r)
			r = add(&set, &capacity, t);
		if (r && t)
			trace_close(t);
	}
	if (r)
		goto out;
	if (set.count)
		qsort(set.images, set.count, sizeof(*set.images), by_start);
	see_ends(&set);
out:
	if (r) {
		trace_set_close(&set);
		return r;
	}
	*out = set;
	return 0;
}

void trace_set_close(struct trace_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		trace_close(set->images[i]);
	free(set->images);
	trace_close(set->supervisor);
	free((char *)set->path);
	*set = (struct trace_set){0};
}
