/*
 * trace_set.c - opens a directory of traces, or one named file, sorts the traces, and lets the
 * supervisor's file say how its children ended.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/cursor.h"
#include "trace/directory/small.h"
#include "trace/reader.h"
#include "util/text/note.h"
#include "util/text/str.h"
#include "whyoom/trace.h"

#define SUFFIX ".whyoom"
/* The longest time from a program's last record, through exec and loading, to the next start. */
#define NEXT_PROGRAM_NS 1000000000u
#define PAGE_BYTES 4096u

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

/* Find the pid's last image that began before `real_ns`. */
static struct trace *image_of(const struct trace_set *set, uint32_t pid, uint64_t real_ns)
{
	for (size_t i = set->count; i-- > 0;)
		if (set->images[i]->facts.pid == pid &&
		    set->images[i]->facts.start_real_ns <= real_ns)
			return set->images[i];
	return NULL;
}

static size_t folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

/* Detect an exec after the program changed its user: the next image writes to that user's
 * directory, and may not write the end of this one. */
static void see_exec(const struct trace_set *set, size_t i)
{
	struct trace_facts *a = &set->images[i]->facts;
	uint64_t last = a->start_real_ns + a->last_ns;

	for (size_t j = i + 1; j < set->count && a->end_how == TRACE_END_NONE; j++) {
		const struct trace_facts *b = &set->images[j]->facts;

		if (b->pid == a->pid && b->image == a->image + 1 &&
		    folder_of(a->path) != folder_of(b->path) &&
		    b->start_real_ns < last + NEXT_PROGRAM_NS)
			a->end_how = TRACE_END_EXEC;
	}
}

static void see_ends(struct trace_set *set)
{
	struct trace *s = set->supervisor;
	struct event event;
	struct trace *image;

	if (s) {
		/* A truncated supervisor's file gave all that it has. */
		while (trace_next(s, &event, NULL) > 0) {
			if (event.kind != EV_CHILD_END)
				continue;
			image = image_of(
			    set, event.u.child.pid, s->facts.start_real_ns + event.time_ns);
			if (image)
				trace_see_child_end(image, event.u.child.how, event.u.child.code);
		}
		trace_rewind(s);
		s->facts.running = trace_is_running(s);
		source_release(&s->source);
	}
	if (s)
		trace_publish(s);
	for (size_t i = 0; i < set->count; i++) {
		see_exec(set, i);
		set->images[i]->facts.running = trace_is_running(set->images[i]);
		trace_publish(set->images[i]);
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

/* Count a file that was left out, unless it is of a newer version, may not be read, or has no
 * event: that is not damage. */
static void count_left_out(struct trace_set *set, const char *path, int why)
{
	struct stat st;

	if (why == -ENOTSUP || why == -ENODATA || why == -EACCES || why == -EPERM ||
	    why == -EISDIR || stat(path, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return;
	set->left_out++;
	set->left_out_bytes += (uint64_t)st.st_size;
}

/* State while a set is opened. */
struct opening {
	struct trace_set *set;
	size_t capacity, empty_capacity;
	size_t refused;
	bool emptied; /* a file of small traces is empty */
	uint64_t file_bytes; /* bytes of the files of single traces */
	struct err first; /* the first refusal, and its code */
	int first_code;
};

static int out_of_memory(const struct opening *o, struct err *err)
{
	return err_set(err, -ENOMEM, "%s: out of memory", o->set->path);
}

/* Note an unreadable file; the others are still read. */
static int refuse(
    struct opening *o, const char *path, const struct err *why, int code, struct err *err)
{
	if (code == -ENOMEM) {
		*err = *why;
		return code;
	}
	count_left_out(o->set, path, code);
	if (!o->refused++) {
		o->first = *why;
		o->first_code = code;
	} else {
		note("left out: %s", why->text);
	}
	return 0;
}

static int add_opened(struct opening *o, struct trace *t, struct err *err)
{
	int r = add(o->set, &o->capacity, t);

	if (!r)
		return 0;
	trace_close(t);
	return out_of_memory(o, err);
}

static int add_empty(struct opening *o, const char *name, struct err *err)
{
	struct trace_set *set = o->set;
	char *copy = strdup(name);

	if (!copy || (set->empty_count == o->empty_capacity &&
			 vec_grow((void **)&set->empty, &o->empty_capacity, set->empty_count + 1,
			     sizeof(*set->empty)))) {
		free(copy);
		return out_of_memory(o, err);
	}
	set->empty[set->empty_count++] = copy;
	return 0;
}

static int path_of(const char *folder, const char *name, struct str *out)
{
	str_clear(out);
	str_puts(out, folder);
	if (folder[strlen(folder) - 1] != '/')
		str_putc(out, '/');
	str_puts(out, name);
	return out->failed ? -ENOMEM : 0;
}

/* `user`: the file is in a user's directory; a supervisor's file there does not count. */
static int open_file(struct opening *o, const char *name, bool user, struct err *err)
{
	struct trace *t = NULL;
	struct str path = {0};
	struct err why;
	int r = path_of(o->set->path, name, &path);

	if (r)
		return out_of_memory(o, err);
	r = trace_open(path.text, &t, &why);
	if (r == -ENOENT) /* it moved to the small traces meanwhile, or was removed */
		r = 0;
	else if (r == -ENODATA)
		r = add_empty(o, name, err);
	else if (r)
		r = refuse(o, path.text, &why, r, err);
	else if (user && t->facts.mode == TRACE_MODE_SUPERVISOR)
		trace_close(t);
	else
		r = add_opened(o, t, err);
	str_free(&path);
	return r;
}

/* Open a user's directory within ours. A link is not followed: it could lead anywhere. */
static int open_place(struct opening *o, int top, const char *place, struct err *err)
{
	int fd = openat(top, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct str name = {0};
	struct stat st;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && !r && (entry = readdir(dir))) {
		if (!is_trace_name(entry->d_name) ||
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		r = path_of(place, entry->d_name, &name) ? out_of_memory(o, err)
							 : open_file(o, name.text, true, err);
	}
	str_free(&name);
	if (dir)
		closedir(dir);
	return r;
}

/* Count a torn record as lost, unless the process left its own file. */
static void count_torn(struct trace_set *set, const struct small_torn *torn)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct trace_facts *f = &set->images[i]->facts;

		if (torn->pid && f->pid == torn->pid && f->image == torn->image &&
		    f->start_real_ns == torn->start_real_ns)
			return;
	}
	set->left_out++;
	set->left_out_bytes += torn->bytes;
}

/* The name of a process image's own file. */
struct own_name {
	char text[64];
};

static struct own_name own_name(uint32_t pid, uint32_t image)
{
	struct own_name name;

	snprintf(name.text, sizeof(name.text), "%u.%u" SUFFIX, pid, image);
	return name;
}

/* Open the small traces in a file; with a name, only that process's. */
static int open_small(
    struct opening *o, const char *folder, const char *file, const char *only, struct err *err)
{
	struct small_list list = {0};
	struct str shared = {0}, path = {0};
	struct err why;
	int r = path_of(folder, file, &shared);

	if (!r)
		r = small_list_read(shared.text, &list, &why);
	if (r) {
		r = r == -ENOENT ? 0 : refuse(o, shared.text, &why, r, err);
		str_free(&shared);
		return r;
	}
	o->emptied |= !list.places.count && !list.torn.count;
	for (size_t i = 0; i < list.torn.count; i++) {
		const struct small_torn *torn = &list.torn.items[i];

		if (!only || !torn->pid || !strcmp(only, own_name(torn->pid, torn->image).text))
			count_torn(o->set, torn);
	}
	for (size_t i = 0; i < list.places.count && !r; i++) {
		const struct small_place *place = &list.places.items[i];
		struct own_name name = own_name(place->pid, place->image);
		struct trace *t = NULL;

		if (only && strcmp(only, name.text) != 0)
			continue;
		r = path_of(folder, name.text, &path);
		if (!r)
			r = trace_open_small(path.text, shared.text, place, &t, &why);
		else
			out_of_memory(o, &why);
		r = r ? refuse(o, path.text, &why, r, err) : add_opened(o, t, err);
	}
	small_list_free(&list);
	str_free(&shared);
	str_free(&path);
	return r;
}

/* Drop duplicates: a process killed while it moved its trace to the small ones leaves two. */
static void drop_doubles(struct trace_set *set)
{
	size_t n = 0;

	for (size_t i = 0; i < set->count; i++) {
		struct trace *t = set->images[i], **last = n ? &set->images[n - 1] : NULL;

		if (!last || by_start(last, &t) != 0 ||
		    (!trace_is_small(*last) && !trace_is_small(t))) {
			set->images[n++] = t;
			continue;
		}
		if (trace_is_small(t)) {
			trace_close(t);
		} else {
			trace_close(*last);
			*last = t;
		}
	}
	set->count = n;
}

static int none_there(const struct opening *o, struct err *err)
{
	if (o->refused == 1)
		return err_set(err, o->first_code, "%s", o->first.text);
	if (o->refused)
		return err_set(err, o->first_code, "%.200s; so are %zu more files there",
		    o->first.text, o->refused - 1);
	if (o->set->empty_count)
		return err_set(err, -ENODATA,
		    "%s: no trace holds anything yet: the %s there %s empty, as of a process that "
		    "has only just begun, or that was killed before anything was recorded",
		    o->set->path, o->set->empty_count == 1 ? "file" : "files",
		    o->set->empty_count == 1 ? "is" : "are");
	return err_set(err, -ENOENT,
	    "%s: no traces in this directory (files named PID.IMAGE.whyoom): did the "
	    "program run "
	    "under whyoom, and is this the directory that it named?",
	    o->set->path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Return the most bytes that processes claimed of the account and did not write: those that were
 * killed while they moved their traces to the small ones. Such a process had ended, and its own
 * file is still there. */
static uint64_t claimed_most(const struct trace_set *set)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < set->count; i++) {
		const struct trace_facts *f = &set->images[i]->facts;

		if (!trace_is_small(set->images[i]) && f->end_how != TRACE_END_NONE &&
		    f->file_bytes <= (uint64_t)TRACE_SMALL_SLOTS_MAX * TRACE_SLOT_BYTES)
			bytes += TRACE_SMALL_BYTES_MAX;
	}
	return bytes;
}

/* Count the loss of an emptied file of small traces: only the account shows whether it held any. */
static void count_emptied(const struct opening *o)
{
	struct trace_set *set = o->set;
	uint64_t lost;

	if (!o->emptied || !set->account.known || set->account.held <= o->file_bytes)
		return;
	lost = set->account.held - o->file_bytes;
	/* a process that is killed after its claim, before its file grows, leaves whole pages
	 * there; small traces are no multiple of a page */
	if (lost % PAGE_BYTES == 0 || lost <= claimed_most(set))
		return;
	set->left_out++;
	set->left_out_bytes += lost;
}

/* Read disk.account: the disk space of all traces of a directory. .known is false if it is absent
 * or damaged. */
static struct trace_account account_read(const char *directory)
{
	struct trace_account a = {.known = false};
	uint8_t raw[offsetof(struct trace_disk, counted_s)];
	char path[4096];
	struct cursor c = cursor_of(raw, sizeof(raw));
	int64_t held;
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/" TRACE_DISK_NAME, directory) >= (int)sizeof(path))
		return a;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return a;
	n = pread(fd, raw, sizeof(raw), 0);
	close(fd);
	if (n != (ssize_t)sizeof(raw) || memcmp(cursor_take(&c, 8), TRACE_DISK_MAGIC, 8) != 0 ||
	    cursor_fixed(&c, 4) != TRACE_DISK_VERSION)
		return a;
	cursor_fixed(&c, 4);
	a.bound = cursor_fixed(&c, 8);
	held = (int64_t)cursor_fixed(&c, 8);
	a.held = held < 0 ? 0 : (uint64_t)held;
	a.known = a.bound && a.bound <= INT64_MAX;
	return a;
}

static int open_directory(DIR *dir, struct trace_set *set, struct err *err)
{
	struct opening o = {.set = set};
	struct dirent *entry;
	struct stat st;
	int r = 0;

	while (!r && (entry = readdir(dir)))
		if (is_trace_name(entry->d_name)) {
			if (!fstatat(dirfd(dir), entry->d_name, &st, 0))
				o.file_bytes += (uint64_t)st.st_size;
			r = open_file(&o, entry->d_name, false, err);
		} else if (trace_is_user_directory(entry->d_name)) {
			r = open_place(&o, dirfd(dir), entry->d_name, err);
		}
	/* Last, because a process that ends meanwhile moves its trace there. */
	rewinddir(dir);
	while (!r && (entry = readdir(dir)))
		if (small_is_name(entry->d_name))
			r = open_small(&o, set->path, entry->d_name, NULL, err);
	if (r)
		return r;
	if (!set->count && !set->supervisor)
		return none_there(&o, err);
	if (o.refused)
		note("left out: %s", o.first.text);
	if (set->empty_count)
		qsort(set->empty, set->empty_count, sizeof(*set->empty), by_name);
	set->account = account_read(set->path);
	count_emptied(&o);
	return 0;
}

/* Open a file of small traces, or, by its own name, one trace within such a file. */
static int open_shared(struct trace_set *set, bool alone, struct err *err)
{
	struct opening o = {.set = set};
	char *slash = strrchr(set->path, '/');
	const char *name = slash ? slash + 1 : set->path;
	char *folder = slash == set->path ? strdup("/")
		       : slash		  ? strndup(set->path, (size_t)(slash - set->path))
					  : strdup(".");
	DIR *dir = folder && alone ? opendir(folder) : NULL;
	struct dirent *entry;
	int r = folder ? 0 : out_of_memory(&o, err);

	if (!r && !alone)
		r = open_small(&o, folder, name, NULL, err);
	while (!r && dir && (entry = readdir(dir)))
		if (small_is_name(entry->d_name))
			r = open_small(&o, folder, entry->d_name, name, err);
	if (dir)
		closedir(dir);
	free(folder);
	if (!r && !set->count && alone)
		r = err_set(err, -ENOENT, "%s: %s", set->path, strerror(ENOENT));
	else if (!r && !set->count)
		r = o.refused
			? none_there(&o, err)
			: err_set(err, -EINVAL, "%s: no small trace in it is whole", set->path);
	return r;
}

static int open_named(struct trace_set *set, struct err *err)
{
	const char *slash = strrchr(set->path, '/'), *name = slash ? slash + 1 : set->path;
	struct opening o = {.set = set};
	struct trace *t = NULL;
	int r;

	if (small_is_name(name))
		return open_shared(set, false, err);
	if (is_trace_name(name) && access(set->path, F_OK) && errno == ENOENT)
		return open_shared(set, true, err);
	r = trace_open(set->path, &t, err);
	return r ? r : add_opened(&o, t, err);
}

int trace_set_open(const char *path, struct trace_set *out, struct err *err)
{
	struct trace_set set = {0};
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
		r = open_named(&set, err);
	}
	if (r)
		goto out;
	if (set.count)
		qsort(set.images, set.count, sizeof(*set.images), by_start);
	drop_doubles(&set);
	see_ends(&set);
out:
	if (r) {
		trace_set_close(&set);
		return r;
	}
	*out = set;
	return 0;
}

static void add_damage(
    struct trace_set_damage *out, const struct trace *t, bool own, double *recorded)
{
	const struct trace_damage *d = &t->facts.damage;

	*recorded += (double)t->facts.event_bytes + (double)t->definition_bytes;
	if (!d->count)
		return;
	out->files++;
	out->bytes += d->bytes;
	out->kinds |= d->kinds;
	if (!own)
		return;
	out->from_ns = d->from_ns;
	out->to_ns = d->to_ns;
	out->threads = d->threads;
	out->share = d->share;
}

/* Losses in other processes' traces count: they may hide which process is to blame. */
void trace_set_damage(
    const struct trace_set *set, const struct trace *of, struct trace_set_damage *out)
{
	double recorded = 0, all;

	*out = (struct trace_set_damage){.files = (uint32_t)set->left_out,
	    .left_out = (uint32_t)set->left_out,
	    .bytes = set->left_out_bytes};
	for (size_t i = 0; i < set->count; i++) {
		trace_publish(set->images[i]);
		add_damage(out, set->images[i], set->images[i] == of, &recorded);
	}
	if (set->supervisor)
		add_damage(out, set->supervisor, false, &recorded);
	all = recorded + (double)out->bytes;
	if (out->bytes && (double)out->bytes / all > out->share)
		out->share = (double)out->bytes / all;
}

void trace_set_close(struct trace_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		trace_close(set->images[i]);
	free(set->images);
	for (size_t i = 0; i < set->empty_count; i++)
		free(set->empty[i]);
	free(set->empty);
	trace_close(set->supervisor);
	free((char *)set->path);
	*set = (struct trace_set){0};
}
