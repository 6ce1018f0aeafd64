/*
 * process_family.c - see process_family.h.
 */
#include "cmd/supervise/process_family.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/supervise/proc.h"

#define MEMBERS_MAX 1024u
#define STRANGERS_MAX (1u << 20)

/* The last field of /proc/loadavg: the pid that was given out last, to a process or a thread. */
static long last_pid(const struct run_family *f)
{
	char text[128], *last;
	ssize_t n = f->loadavg < 0 ? -1 : pread(f->loadavg, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	last = strrchr(text, ' ');
	return last ? strtol(last, NULL, 10) : 0;
}

static struct timespec changed(const struct run_family *f)
{
	struct stat st;

	return fstat(f->dir, &st) ? (struct timespec){0} : st.st_mtim;
}

static struct run_member *add(struct run_family *f, pid_t pid, uint64_t start)
{
	struct run_member member = {.pid = pid, .start = start, .seen = true};

	if (f->members.count >= MEMBERS_MAX || vec_push(&f->members, member))
		return NULL;
	return &f->members.items[f->members.count - 1];
}

static struct run_member *find(struct run_family *f, pid_t pid)
{
	for (size_t i = 0; i < f->members.count; i++)
		if (f->members.items[i].pid == pid)
			return &f->members.items[i];
	return NULL;
}

void run_family_init(
    struct run_family *f, pid_t target, int dir, void (*leave)(struct run_member *member))
{
	struct run_proc_stat stat = {0};

	*f = (struct run_family){.dir = dir, .leave = leave, .last_pid = -1};
	f->loadavg = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	run_proc_stat(target, &stat);
	f->oldest = stat.start;
	add(f, target, stat.start);
}

void run_family_drop(struct run_family *f, size_t index)
{
	f->leave(&f->members.items[index]);
	f->members.items[index] = f->members.items[--f->members.count];
}

void run_family_fini(struct run_family *f)
{
	while (f->members.count)
		run_family_drop(f, f->members.count - 1);
	if (f->loadavg >= 0)
		close(f->loadavg);
	vec_free(&f->members);
	vec_free(&f->strangers);
}

bool run_family_news(struct run_family *f)
{
	long last = last_pid(f);
	struct timespec at = changed(f);

	return !last || last != f->last_pid || at.tv_sec != f->changed.tv_sec ||
	       at.tv_nsec != f->changed.tv_nsec;
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

struct pair {
	pid_t pid;
	struct run_proc_stat stat;
};

/* Processes of a look through /proc, with their parents where these had to be read. */
struct found {
	VEC(struct pair) new; /* neither members nor known strangers */
	struct run_strangers strangers; /* those that were known before */
};

static void note_stranger(struct found *found, pid_t pid)
{
	/* One that finds no room is looked at again the next time. */
	if (found->strangers.count < STRANGERS_MAX)
		(void)vec_push(&found->strangers, pid);
}

/* Its trace is in our directory: a descendant that left the tree before it was seen in it. */
static bool has_trace(const struct run_family *f, pid_t pid)
{
	char name[64];

	snprintf(name, sizeof(name), "%d.0.whyoom", (int)pid);
	return pid != getpid() && !faccessat(f->dir, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

static bool is_stranger(const struct run_family *f, pid_t pid)
{
	return bsearch(&pid, f->strangers.items, f->strangers.count, sizeof(pid), by_pid) != NULL;
}

static void read_proc(struct run_family *f, bool all, bool traces, struct found *out)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		struct run_member *known;
		struct pair p;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		p.pid = atoi(e->d_name);
		if (!all && is_stranger(f, p.pid) && !(traces && has_trace(f, p.pid))) {
			note_stranger(out, p.pid);
			continue;
		}
		known = find(f, p.pid);
		if (!run_proc_stat(p.pid, &p.stat))
			continue;
		if (known && known->start != p.stat.start) { /* the pid is another's by now */
			run_family_drop(f, (size_t)(known - f->members.items));
			known = NULL;
		}
		if (known)
			known->seen = true;
		else if (p.stat.start < f->oldest) /* none of the target's children */
			note_stranger(out, p.pid);
		else
			(void)vec_push(&out->new, p); /* without memory: the next time */
	}
	if (d)
		closedir(d);
	else
		for (size_t i = 0; i < f->members.count; i++)
			f->members.items[i].seen = true;
}

/* Adds each process that has a trace or whose parent is a member, until no pass adds another. */
static void take_in(struct run_family *f, struct found *found)
{
	bool more = true;

	for (size_t i = 0; i < found->new.count; i++)
		if (!find(f, found->new.items[i].pid) && has_trace(f, found->new.items[i].pid))
			add(f, found->new.items[i].pid, found->new.items[i].stat.start);
	while (more) {
		more = false;
		for (size_t i = 0; i < found->new.count; i++) {
			const struct pair *p = &found->new.items[i];
			struct run_member *parent;

			if (find(f, p->pid))
				continue;
			parent = find(f, p->stat.ppid);
			if (parent && parent->seen && add(f, p->pid, p->stat.start))
				more = true;
		}
	}
	for (size_t i = 0; i < found->new.count; i++)
		if (!find(f, found->new.items[i].pid))
			note_stranger(found, found->new.items[i].pid);
}

void run_family_find(struct run_family *f, bool all)
{
	/* Before the look: what comes during it is looked for the next time. */
	long last = last_pid(f);
	struct timespec at = changed(f);
	bool traces = at.tv_sec != f->changed.tv_sec || at.tv_nsec != f->changed.tv_nsec;
	struct found found = {0};

	for (size_t i = 0; i < f->members.count; i++)
		f->members.items[i].seen = false;
	read_proc(f, all, traces, &found);
	take_in(f, &found);
	for (size_t i = 0; i < f->members.count;)
		if (f->members.items[i].seen)
			i++;
		else
			run_family_drop(f, i);
	qsort(found.strangers.items, found.strangers.count, sizeof(pid_t), by_pid);
	free(f->strangers.items);
	f->strangers = found.strangers;
	vec_free(&found.new);
	f->last_pid = last;
	f->changed = at;
}
