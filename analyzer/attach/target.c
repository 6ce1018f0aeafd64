/*
 * target.c - see target.h.
 */
#include "attach/target.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PF_KTHREAD 0x00200000u /* linux/sched.h; the flags of /proc/PID/stat have it */
#define STAT_MAX 1024

/* Reads a small file of /proc whole. Returns its length, or -1. */
static ssize_t read_small(const char *path, char *text, size_t most)
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return -1;
	n = fread(text, 1, most - 1, f);
	text[n] = '\0';
	fclose(f);
	return (ssize_t)n;
}

/* What follows "\nNAME:" in a status file, without blanks; "" if there is none. */
static const char *field(const char *status, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = status; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, n) && line[n] == ':')
			return line + n + 1 + strspn(line + n + 1, " \t");
	}
	return "";
}

static uint64_t number(const char *status, const char *name, int base)
{
	return strtoull(field(status, name), NULL, base);
}

/* The `skip`th number from here. */
static uint64_t nth(const char *text, unsigned skip)
{
	for (; skip; skip--) {
		text += strcspn(text, "\t ");
		text += strspn(text, "\t ");
	}
	return strtoull(text, NULL, 10);
}

/* Splits /proc/.../stat: its state, and what stands behind it. NULL: it cannot be read. The name in
 * it may have any characters, so the last ')' ends it. */
static const char *read_stat(const char *path, char text[STAT_MAX], char *state)
{
	const char *end;

	if (read_small(path, text, STAT_MAX) <= 0)
		return NULL;
	end = strrchr(text, ')');
	if (!end || end[1] != ' ' || !end[2])
		return NULL;
	*state = end[2];
	return end + 2;
}

int target_read(pid_t pid, struct target *out, struct err *err)
{
	char path[64], status[8192], stat_text[STAT_MAX];
	const char *rest, *name;
	struct stat theirs, ours;
	int rc;

	*out = (struct target){.pid = pid};
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (read_small(path, status, sizeof(status)) <= 0)
		return err_set(err, -ESRCH, "there is no process %d here", (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	rest = read_stat(path, stat_text, &out->state);
	if (!rest)
		return err_set(err, -ESRCH, "there is no process %d here", (int)pid);
	name = field(status, "Name");
	rc = snprintf(out->name, sizeof(out->name), "%.*s", (int)strcspn(name, "\n"), name);
	(void)rc; /* the kernel's are short */
	out->leader = (pid_t)number(status, "Tgid", 10);
	out->tracer = (pid_t)number(status, "TracerPid", 10);
	out->seccomp = (unsigned)number(status, "Seccomp", 10);
	out->caught = number(status, "SigCgt", 16);
	out->uid = (uid_t)nth(field(status, "Uid"), 1);
	out->gid = (gid_t)nth(field(status, "Gid"), 1);
	/* The fields from the state on are numbers 3, 4, ...; the flags are number 9. */
	out->kernel = (nth(rest, 6) & PF_KTHREAD) != 0;
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	out->other_mounts = !stat(path, &theirs) && !stat("/proc/self/ns/mnt", &ours) &&
			    theirs.st_ino != ours.st_ino;
	return 0;
}

static void forget_maps(struct target *t)
{
	for (size_t i = 0; i < t->maps.count; i++)
		free(t->maps.items[i].path);
	vec_free(&t->maps);
}

void target_fini(struct target *t)
{
	forget_maps(t);
}

/* Reads a line of maps: "lo-hi perms offset device inode    path". */
static bool parse_map(char *line, struct target_map *out)
{
	unsigned long long lo, hi, offset, inode;
	char rights[8];
	int path = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%llx-%llx %7s %llx %*s %llu %n", &lo, &hi, rights, &offset, &inode,
		&path) < 5 ||
	    !path)
		return false;
	*out = (struct target_map){lo, hi, offset, inode, rights[2] == 'x', strdup(line + path)};
	return true;
}

int target_read_maps(struct target *t)
{
	char path[64], *line = NULL;
	struct target_map map;
	size_t room = 0;
	int rc = 0;
	FILE *f;

	forget_maps(t);
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)t->pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -EACCES;
	errno = 0;
	while (!rc && getline(&line, &room, f) > 0) {
		if (!parse_map(line, &map))
			continue;
		rc = map.path ? vec_push(&t->maps, map) : -ENOMEM;
		if (rc)
			free(map.path);
	}
	if (!rc && ferror(f))
		rc = errno == ESRCH ? -ESRCH : -EACCES;
	free(line);
	fclose(f);
	return rc;
}

bool target_is_file(const struct target_map *map, const char *beginning)
{
	const char *slash = strrchr(map->path, '/');

	return slash && !strncmp(slash + 1, beginning, strlen(beginning));
}

bool target_is_library(const struct target_map *map)
{
	return target_is_file(map, "libwhyoom.so") || target_is_file(map, "memfd:libwhyoom.so");
}

const struct target_map *target_module(const struct target *t, const char *beginning)
{
	for (size_t i = 0; i < t->maps.count; i++)
		if (!t->maps.items[i].offset && t->maps.items[i].inode &&
		    target_is_file(&t->maps.items[i], beginning))
			return &t->maps.items[i];
	return NULL;
}

const struct target_map *target_program(const struct target *t)
{
	char path[64], program[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)t->pid);
	n = readlink(path, program, sizeof(program) - 1);
	if (n <= 0)
		return NULL;
	program[n] = '\0';
	for (size_t i = 0; i < t->maps.count; i++)
		if (!t->maps.items[i].offset && !strcmp(t->maps.items[i].path, program))
			return &t->maps.items[i];
	return NULL;
}

const struct target_map *target_map_at(const struct target *t, uint64_t address)
{
	size_t low = 0, high = t->maps.count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (address >= t->maps.items[middle].hi)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->maps.count && address >= t->maps.items[low].lo ? &t->maps.items[low] : NULL;
}

int target_read_thread(pid_t pid, pid_t tid, struct target_thread *out)
{
	char path[96], text[8192];
	const char *rest, *own;
	uint64_t waiting;

	*out = (struct target_thread){.tid = tid, .own = tid};
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	rest = read_stat(path, text, &out->state);
	if (!rest)
		return -ESRCH;
	out->ran = nth(rest, 11) + nth(rest, 12); /* fields 14 and 15: user and system time */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	if (read_small(path, text, sizeof(text)) <= 0)
		return -ESRCH;
	waiting = number(text, "SigPnd", 16) | number(text, "ShdPnd", 16);
	out->pending = (waiting & ~number(text, "SigBlk", 16)) != 0;
	/* "NSpid: outermost ... innermost" */
	own = field(text, "NSpid");
	while (*own && *own != '\n') {
		out->own = (pid_t)strtol(own, NULL, 10);
		own += strcspn(own, "\t \n");
		own += strspn(own, "\t ");
	}
	return 0;
}

static int by_activity(const void *a, const void *b)
{
	const struct target_thread *x = a, *y = b;

	if ((x->state == 'R') != (y->state == 'R'))
		return y->state == 'R' ? 1 : -1;
	return (x->ran < y->ran) - (x->ran > y->ran);
}

int target_read_threads(pid_t pid, target_threads *out)
{
	char path[64];
	struct dirent *e;
	int rc = 0;
	DIR *d;

	out->count = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (!d)
		return -ESRCH;
	while (!rc && (e = readdir(d))) {
		struct target_thread thread;

		if (*e->d_name != '.' && !target_read_thread(pid, (pid_t)atoi(e->d_name), &thread))
			rc = vec_push(out, thread);
	}
	closedir(d);
	if (!rc && out->count)
		qsort(out->items, out->count, sizeof(*out->items), by_activity);
	return rc;
}

bool target_peek(pid_t pid, uint64_t address, void *into, size_t bytes)
{
	struct iovec here = {into, bytes}, there = {(void *)(uintptr_t)address, bytes};

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

bool target_poke(pid_t pid, uint64_t address, const void *from, size_t bytes)
{
	struct iovec here = {(void *)(uintptr_t)from, bytes};
	struct iovec there = {(void *)(uintptr_t)address, bytes};

	return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}
