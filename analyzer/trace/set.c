/*
 * set.c - a directory of traces, or the one that was named: opens them, orders them, and lets the
 * supervisor's file say how its children ended.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* What could not be opened. */
struct refusals {
	struct err first;
	size_t count;
	int code;
};

/* "PATH/NAME", or NULL. */
static char *join(const char *path, const char *name)
{
	char *joined = malloc(strlen(path) + strlen(name) + 2);

	if (!joined)
		return NULL;
	strcpy(joined, path);
	if (joined[strlen(joined) - 1] != '/')
		strcat(joined, "/");
	return strcat(joined, name);
}

static int open_one(const char *path, bool top, struct trace_set *set, size_t *capacity,
    struct refusals *refused, struct err *err)
{
	struct trace *t = NULL;
	struct err this;
	int r = trace_open(path, &t, &this);

	if (r == -ENOMEM) {
		*err = this;
		return r;
	}
	if (r) {
		if (!refused->count++) {
			refused->first = this;
			refused->code = r;
		} else {
			note("left out: %s", this.text);
		}
		return 0;
	}
	if (!top && t->facts.mode == TRACE_MODE_SUPERVISOR) { /* a user's says nothing of all */
		trace_close(t);
		return 0;
	}
	r = add(set, capacity, t);
	if (r) {
		trace_close(t);
		err_set(err, r, "%s: out of memory", set->path);
	}
	return r;
}

/* Those of a directory; and, where `top`, those of the directories in it that belong to users. A
 * link in such a one is not followed: it may lead anywhere. */
static int open_all(const char *path, bool top, struct trace_set *set, size_t *capacity,
    struct refusals *refused, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (top ? 0 : O_NOFOLLOW));
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat st;
	int r = 0;

	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return top ? err_set(err, r, "%s: %s", path, strerror(-r)) : 0;
	}
	while (!r && (entry = readdir(dir))) {
		bool place = top && trace_is_place(entry->d_name);
		char *inner;

		if (!place && !is_trace_name(entry->d_name))
			continue;
		if (!top &&
		    (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)))
			continue;
		inner = join(path, entry->d_name);
		if (!inner)
			r = err_set(err, -ENOMEM, "%s: out of memory", path);
		else if (place)
			r = open_all(inner, false, set, capacity, refused, err);
		else
			r = open_one(inner, top, set, capacity, refused, err);
		free(inner);
	}
	closedir(dir);
	return r;
}

static int open_directory(struct trace_set *set, struct err *err)
{
	struct refusals refusals = {.first = {""}};
	size_t capacity = 0, refused;
	int r = open_all(set->path, true, set, &capacity, &refusals, err);

	refused = refusals.count;
	if (r)
		return r;
	if (!set->count && !set->supervisor) {
		if (refused == 1)
			return err_set(err, refusals.code, "%s", refusals.first.text);
		if (refused)
			return err_set(err, refusals.code, "%.200s; so are %zu more files there",
			    refusals.first.text, refused - 1);
		return err_set(err, -ENOENT,
		    "%s: no traces in this directory (files named PID.IMAGE.whyoom): did the "
		    "program run "
		    "under whyoom, and is this the directory that it named?",
		    set->path);
	}
	if (refused)
		note("left out: %s", refusals.first.text);
	return 0;
}

int trace_set_open(const char *path, struct trace_set *out, struct err *err)
{
	struct trace_set set = {0};
	struct trace *t = NULL;
	size_t capacity = 0;
	struct stat st;
	int r;

	set.path = *path ? strdup(path) : strdup(".");
	if (!set.path)
		return err_set(err, -ENOMEM, "%s: out of memory", path);
	if (!stat(set.path, &st) && S_ISDIR(st.st_mode)) {
		r = open_directory(&set, err);
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
