/*
 * proc.c - parses /proc/PID/{status,smaps_rollup,maps,stat}.
 */
#include "cmd/supervise/proc.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct named {
	const char *name;
	uint32_t key;
	uint32_t unit;
};

struct list {
	struct event_level *at;
	size_t count, max;
};

static void add(struct list *list, uint32_t key, uint64_t value)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->at[i].key == key) {
			list->at[i].value += value;
			return;
		}
	if (list->count < list->max)
		list->at[list->count++] = (struct event_level){.key = key, .value = value};
}

static int open_fd(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* `kept`: the file, open since before; -1: it is opened for this. */
static ssize_t read_all(pid_t pid, const char *name, int kept, char *to, size_t size)
{
	int fd = kept >= 0 ? kept : open_fd(pid, name);
	size_t used = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	while (used < size - 1 && (n = pread(fd, to + used, size - 1 - used, (off_t)used)) > 0)
		used += (size_t)n;
	if (kept < 0)
		close(fd);
	to[used] = '\0';
	return (ssize_t)used;
}

/* "Name:   123 kB" lines; names of equal key are added up. */
static size_t named_levels(pid_t pid, const char *file, int kept, const struct named *names,
    struct event_level *out, size_t max)
{
	struct list list = {.at = out, .max = max};
	char text[8192], *save;

	if (read_all(pid, file, kept, text, sizeof(text)) <= 0)
		return 0;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t n = strcspn(line, ":");

		if (!line[n])
			continue;
		line[n] = '\0';
		for (const struct named *row = names; row->name; row++)
			if (!strcmp(row->name, line))
				add(&list, row->key, strtoull(line + n + 1, NULL, 10) * row->unit);
	}
	return list.count;
}

void run_proc_open(pid_t pid, bool keep, struct run_proc_files *out)
{
	*out = (struct run_proc_files){.pid = pid, .statm = -1, .status = -1};
	if (!keep)
		return;
	out->statm = open_fd(pid, "statm");
	out->status = open_fd(pid, "status");
}

void run_proc_close(struct run_proc_files *files)
{
	if (files->statm >= 0)
		close(files->statm);
	if (files->status >= 0)
		close(files->status);
	files->statm = files->status = -1;
}

bool run_proc_sizes(const struct run_proc_files *files, uint64_t *rss, uint64_t *vsize)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	char text[128], *end;

	if (read_all(files->pid, "statm", files->statm, text, sizeof(text)) <= 0)
		return false;
	*vsize = strtoull(text, &end, 10) * page;
	*rss = strtoull(end, NULL, 10) * page;
	return true;
}

size_t run_proc_status_of(const struct run_proc_files *files, struct event_level *out, size_t max)
{
	static const struct named names[] = {{"VmRSS", TRACE_LEVEL_RSS, 1024},
	    {"VmHWM", TRACE_LEVEL_RSS_PEAK, 1024}, {"VmSize", TRACE_LEVEL_VSIZE, 1024},
	    {"RssAnon", TRACE_LEVEL_RSS_ANON, 1024}, {"RssFile", TRACE_LEVEL_RSS_FILE, 1024},
	    {"RssShmem", TRACE_LEVEL_RSS_SHMEM, 1024}, {"VmData", TRACE_LEVEL_DATA, 1024},
	    {"VmStk", TRACE_LEVEL_STACKS, 1024}, {"VmPTE", TRACE_LEVEL_PAGETABLES, 1024},
	    {"VmSwap", TRACE_LEVEL_SWAP, 1024}, {"Threads", TRACE_LEVEL_THREADS, 1}, {0}};
	struct event_level found[16];
	size_t n = named_levels(files->pid, "status", files->status, names, found, 16);

	/* A zombie has threads and no memory: nothing to say. */
	if (n < 2 || n > max)
		return 0;
	memcpy(out, found, n * sizeof(*out));
	return n;
}

size_t run_proc_status(pid_t pid, struct event_level *out, size_t max)
{
	return run_proc_status_of(
	    &(struct run_proc_files){.pid = pid, .statm = -1, .status = -1}, out, max);
}

size_t run_proc_rollup(pid_t pid, struct event_level *out, size_t max)
{
	static const struct named names[] = {{"Pss", TRACE_LEVEL_PSS, 1024},
	    {"Private_Dirty", TRACE_LEVEL_PRIVATE_DIRTY, 1024},
	    {"Private_Clean", TRACE_LEVEL_PRIVATE_CLEAN, 1024},
	    {"Shared_Clean", TRACE_LEVEL_SHARED, 1024}, {"Shared_Dirty", TRACE_LEVEL_SHARED, 1024},
	    {0}};

	return named_levels(pid, "smaps_rollup", -1, names, out, max);
}

/* start-end perms offset major:minor inode path; false: the line is not like that. */
struct mapping {
	unsigned long long start, end, inode;
	unsigned major, minor;
	char perms[8];
	const char *name;
};

static bool parse_mapping(const char *line, struct mapping *m)
{
	int at = 0;

	if (sscanf(line, "%llx-%llx %7s %*x %x:%x %llu %n", &m->start, &m->end, m->perms, &m->major,
		&m->minor, &m->inode, &at) < 6)
		return false;
	m->name = line + at;
	return true;
}

static FILE *open_file(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

size_t run_proc_maps(pid_t pid, struct event_level *out, size_t max)
{
	struct list list = {.at = out, .max = max};
	struct mapping m;
	char *line = NULL;
	size_t size = 0;
	FILE *f = open_file(pid, "maps");

	if (!f)
		return 0;
	while (getline(&line, &size, f) > 0) {
		uint32_t key = TRACE_LEVEL_VIRT_ANON;

		line[strcspn(line, "\n")] = '\0';
		if (!parse_mapping(line, &m) || !strcmp(m.name, "[vsyscall]"))
			continue; /* the latter is the kernel's, not counted in the size */
		if (m.perms[3] == 's')
			key = TRACE_LEVEL_VIRT_SHARED;
		else if (m.inode)
			key = TRACE_LEVEL_VIRT_FILE;
		else if (!strcmp(m.name, "[heap]"))
			key = TRACE_LEVEL_VIRT_HEAP;
		else if (!strcmp(m.name, "[stack]"))
			key = TRACE_LEVEL_VIRT_STACKS;
		add(&list, key, m.end - m.start);
	}
	free(line);
	fclose(f);
	return list.count;
}

/* The C library puts a guard of a page or a few below each thread's stack. The rest of one of
 * malloc's arenas has no access either, but is large. */
static bool is_guard(const struct mapping *m)
{
	return !m->inode && !strncmp(m->perms, "---p", 4) && m->end - m->start <= 64 << 10;
}

size_t run_proc_threads(pid_t pid, struct event_level *out, size_t max)
{
	struct list list = {.at = out, .max = max};
	struct mapping m, guard = {0};
	bool stack = false;
	char *line = NULL;
	size_t size = 0;
	FILE *f = open_file(pid, "smaps");

	if (!f)
		return 0;
	add(&list, TRACE_LEVEL_VIRT_THREADS, 0);
	add(&list, TRACE_LEVEL_RSS_THREADS, 0);
	while (getline(&line, &size, f) > 0) {
		if (stack && !strncmp(line, "Rss:", 4))
			add(&list, TRACE_LEVEL_RSS_THREADS, strtoull(line + 4, NULL, 10) * 1024);
		if (!parse_mapping(line, &m))
			continue;
		stack = guard.end == m.start && !m.inode && !strncmp(m.perms, "rw-p", 4) &&
			*m.name != '[';
		if (stack)
			add(&list, TRACE_LEVEL_VIRT_THREADS, m.end - guard.start);
		guard = is_guard(&m) ? m : (struct mapping){0};
	}
	free(line);
	fclose(f);
	return list.count;
}

bool run_proc_maps_file(pid_t pid, uint64_t device, uint64_t inode)
{
	struct mapping m;
	char *line = NULL;
	size_t size = 0;
	bool found = false;
	FILE *f = open_file(pid, "maps");

	if (!f)
		return false;
	/* btrfs and overlayfs show another device in maps than stat() does: the inode and the
	 * name's end must do there. */
	while (!found && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (parse_mapping(line, &m) && m.inode == inode &&
		    (makedev(m.major, m.minor) == device ||
			(strlen(m.name) > 7 && !strcmp(m.name + strlen(m.name) - 7, ".whyoom"))))
			found = true;
	}
	free(line);
	fclose(f);
	return found;
}

int run_proc_maps_trace(pid_t pid)
{
	struct mapping m;
	char *line = NULL;
	size_t size = 0;
	int found = -ESRCH; /* one that is ending has no maps any more, before it is a zombie */
	FILE *f = open_file(pid, "maps");

	if (!f)
		return errno == EACCES || errno == EPERM ? -EACCES : -ESRCH;
	while (found != 1 && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		found = parse_mapping(line, &m) && strstr(m.name, ".whyoom");
	}
	free(line);
	fclose(f);
	return found;
}

size_t run_proc_limits(pid_t pid, struct event_level *out, size_t max)
{
	struct list list = {.at = out, .max = max};
	struct rlimit limit;

	if (!prlimit(pid, RLIMIT_AS, NULL, &limit) && limit.rlim_cur != RLIM_INFINITY)
		add(&list, TRACE_LEVEL_LIMIT_AS, limit.rlim_cur);
	if (!prlimit(pid, RLIMIT_DATA, NULL, &limit) && limit.rlim_cur != RLIM_INFINITY)
		add(&list, TRACE_LEVEL_LIMIT_DATA, limit.rlim_cur);
	return list.count;
}

bool run_proc_stat(pid_t pid, struct run_proc_stat *out)
{
	char text[1024], *p, *save, *word;
	int ppid = 0;

	if (read_all(pid, "stat", -1, text, sizeof(text)) <= 0)
		return false;
	p = strrchr(text, ')'); /* the name may hold blanks and parentheses */
	if (!p || sscanf(p + 1, " %c %d", &out->state, &ppid) != 2)
		return false;
	out->ppid = ppid;
	word = strtok_r(p + 1, " ", &save); /* field 3 */
	for (int field = 3; word && field < 22; field++)
		word = strtok_r(NULL, " ", &save);
	out->start = word ? strtoull(word, NULL, 10) : 0;
	return word != NULL;
}

bool run_proc_pending(pid_t pid, int sig)
{
	char text[8192], *at;

	if (read_all(pid, "status", -1, text, sizeof(text)) <= 0 ||
	    !(at = strstr(text, "\nShdPnd:")))
		return false;
	return strtoull(at + 8, NULL, 16) >> (sig - 1) & 1;
}
