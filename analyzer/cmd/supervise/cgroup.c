/*
 * cgroup.c - finds and reads memory cgroups. The limit that strikes may be an ancestor's, so of
 * all groups from the process's own up to the mount point the one with the smallest limit is read.
 */
#include "cmd/supervise/cgroup.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/num.h"

#define NO_LIMIT UINT64_MAX
#define OLD_PART 16u /* batches of the kernel's counters are smaller */

/* One number in a file; false: no such file, or not a number ("max"). */
static bool read_number(const char *dir, const char *name, uint64_t *out)
{
	char path[PATH_MAX + 64];
	unsigned long long v;
	bool ok;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fscanf(f, "%llu", &v) == 1;
	fclose(f);
	if (ok)
		*out = v;
	return ok;
}

static uint64_t limit_of(int version, const char *dir)
{
	uint64_t limit;

	if (!read_number(dir, version == 2 ? "memory.max" : "memory.limit_in_bytes", &limit))
		return NO_LIMIT;
	/* Version 1 says "none" by the largest page-aligned number. */
	return limit >= UINT64_C(1) << 62 ? NO_LIMIT : limit;
}

/* The process's path in the hierarchy with the memory controller. Version 1 wins: where it has the
 * controller, version 2 cannot have it. */
static int find_path(const char *root, pid_t pid, char path[PATH_MAX])
{
	char name[PATH_MAX], line[PATH_MAX + 256];
	int version = 0;
	FILE *f;

	snprintf(name, sizeof(name), "%s/proc/%d/cgroup", root, (int)pid);
	f = fopen(name, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		char *controllers = strchr(line, ':'), *p, *save;

		if (!controllers || !(p = strchr(++controllers, ':')))
			continue;
		*p++ = '\0';
		p[strcspn(p, "\n")] = '\0';
		if (!*controllers && version != 1) {
			version = 2;
			snprintf(path, PATH_MAX, "%s", p);
		}
		for (char *c = strtok_r(controllers, ",", &save); c; c = strtok_r(NULL, ",", &save))
			if (!strcmp(c, "memory")) {
				version = 1;
				snprintf(path, PATH_MAX, "%s", p);
			}
	}
	fclose(f);
	return version;
}

/* mountinfo writes blanks and backslashes as octal. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && isdigit((unsigned char)s[1]) && isdigit((unsigned char)s[2]) &&
		    isdigit((unsigned char)s[3])) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static bool has_word(char *list, const char *word)
{
	char *save;

	for (char *p = strtok_r(list, ",\n", &save); p; p = strtok_r(NULL, ",\n", &save))
		if (!strcmp(p, word))
			return true;
	return false;
}

/* Where that hierarchy is mounted, and which of its directories is at the mount's root. */
static bool find_mount(const char *root, int version, char mount[PATH_MAX], char top[PATH_MAX])
{
	char name[PATH_MAX], *line = NULL;
	size_t size = 0;
	bool found = false;
	FILE *f;

	snprintf(name, sizeof(name), "%s/proc/self/mountinfo", root);
	f = fopen(name, "re");
	if (!f)
		return false;
	while (!found && getline(&line, &size, f) > 0) {
		char *dash = strstr(line, " - "), *save, *field[5] = {0}, *type, *options;

		if (!dash)
			continue;
		*dash = '\0';
		type = strtok_r(dash + 3, " ", &save);
		options = strtok_r(NULL, " ", &save) ? strtok_r(NULL, " ", &save) : NULL;
		if (!type || strcmp(type, version == 2 ? "cgroup2" : "cgroup") ||
		    (version == 1 && (!options || !has_word(options, "memory"))))
			continue;
		field[0] = strtok_r(line, " ", &save);
		for (int i = 1; i < 5; i++)
			field[i] = strtok_r(NULL, " ", &save);
		if (!field[4])
			continue;
		unescape(field[3]);
		unescape(field[4]);
		snprintf(top, PATH_MAX, "%s", field[3]);
		snprintf(mount, PATH_MAX, "%s%s", root, field[4]);
		found = true;
	}
	free(line);
	fclose(f);
	return found;
}

void run_cgroup_find(const char *root, pid_t pid, struct run_cgroup *out)
{
	char mount[PATH_MAX], top[PATH_MAX], dir[2 * PATH_MAX];
	const char *below;
	uint64_t smallest = NO_LIMIT;
	size_t base;

	*out = (struct run_cgroup){0};
	out->version = find_path(root, pid, out->path);
	if (!out->version || !find_mount(root, out->version, mount, top)) {
		out->version = 0;
		return;
	}
	/* A container without a cgroup namespace sees its group mounted, and the host's path. */
	below = out->path;
	if (strcmp(top, "/")) {
		size_t n = strlen(top);

		below += strncmp(below, top, n) || !strchr("/", below[n]) ? strlen(below) : n;
	}
	base = strlen(mount);
	snprintf(dir, sizeof(dir), "%s%s", mount, strcmp(below, "/") ? below : "");
	if (strstr(below, "/..") || strlen(dir) >= PATH_MAX)
		dir[base] = '\0'; /* outside what this namespace shows */
	snprintf(out->dir, sizeof(out->dir), "%.*s", PATH_MAX - 1, dir);
	for (;;) {
		uint64_t limit = limit_of(out->version, dir);
		char *slash;

		if (limit < smallest) {
			smallest = limit;
			snprintf(out->dir, sizeof(out->dir), "%.*s", PATH_MAX - 1, dir);
		}
		slash = strrchr(dir, '/');
		if (strlen(dir) <= base || !slash)
			break;
		*slash = '\0';
	}
}

struct list {
	struct event_level *at;
	size_t count, max;
};

static void add(struct list *list, uint32_t key, uint64_t value)
{
	if (list->count < list->max)
		list->at[list->count++] = (struct event_level){.key = key, .value = value};
}

static void add_number(struct list *list, const char *dir, const char *name, uint32_t key)
{
	uint64_t v;

	if (read_number(dir, name, &v))
		add(list, key, v);
}

struct named {
	const char *name;
	uint32_t key;
};

/* The lines "name value" of a file that are wanted; a name of two rows takes the first found. */
static void add_named(struct list *list, const char *path, const struct named *names, uint64_t unit)
{
	char line[256], name[64];
	unsigned long long v;
	FILE *f = fopen(path, "re");

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63[^ :]%*[ :]%llu", name, &v) != 2)
			continue;
		for (const struct named *n = names; n->name; n++)
			if (!strcmp(n->name, name))
				add(list, n->key, v * unit);
	}
	fclose(f);
}

size_t run_cgroup_events(const char *dir, struct event_level out[RUN_CGROUP_EVENTS])
{
	static const struct named events[] = {{"high", TRACE_LEVEL_CG_HIGH_COUNT},
	    {"oom", TRACE_LEVEL_CG_OOM}, {"oom_kill", TRACE_LEVEL_CG_OOM_KILL}, {0}};
	struct list list = {.at = out, .max = RUN_CGROUP_EVENTS};
	char path[PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/memory.events", dir);
	add_named(&list, path, events, 1);
	return list.count;
}

/* What the kernel has for the group, buffers of sockets too. Before Linux 5.18 there is no sum. */
static void add_kernel(struct list *list, const char *path)
{
	enum { SUM = 1, PART, BESIDE };
	static const struct named names[] = {{"kernel", SUM}, {"kernel_stack", PART},
	    {"pagetables", PART}, {"percpu", PART}, {"slab", PART}, {"sock", BESIDE}, {0}};
	struct event_level found[8];
	struct list all = {.at = found, .max = 8};
	uint64_t sum[BESIDE + 1] = {0};

	add_named(&all, path, names, 1);
	for (size_t i = 0; i < all.count; i++)
		sum[found[i].key] += found[i].value;
	if (all.count)
		add(list, TRACE_LEVEL_CG_KERNEL, (sum[SUM] ? sum[SUM] : sum[PART]) + sum[BESIDE]);
}

static uint64_t *find(const struct list *list, uint32_t key)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->at[i].key == key)
			return &list->at[i].value;
	return NULL;
}

/* Fit the parts of a group's usage to the usage itself. memory.stat is up to two seconds old: it
 * still has what a killed process held, and not yet what a group below took; memory.current is
 * exact (linux, mm/memcontrol.c, FLUSH_TIME). What the parts lack is anonymous memory, which grows
 * fastest. */
static void fit_parts(const struct list *list)
{
	const uint64_t *usage = find(list, TRACE_LEVEL_CG_CURRENT);
	uint64_t *anonymous = find(list, TRACE_LEVEL_CG_ANON),
		 *file = find(list, TRACE_LEVEL_CG_FILE),
		 *kernel = find(list, TRACE_LEVEL_CG_KERNEL);
	uint64_t sum;

	if (!usage)
		return;
	for (uint32_t key = TRACE_LEVEL_CG_ANON; key <= TRACE_LEVEL_CG_INACTIVE_FILE; key++) {
		uint64_t *part = find(list, key);

		if (part)
			*part = num_least(*part, *usage);
	}
	if (!anonymous || !file || !kernel)
		return;
	sum = *anonymous + *file + *kernel;
	if (num_less(*usage, sum) > *usage / OLD_PART)
		*anonymous += *usage - sum;
}

static void levels_2(const char *dir, struct list *list)
{
	static const struct named stat[] = {{"anon", TRACE_LEVEL_CG_ANON},
	    {"file", TRACE_LEVEL_CG_FILE}, {"shmem", TRACE_LEVEL_CG_SHMEM},
	    {"inactive_file", TRACE_LEVEL_CG_INACTIVE_FILE}, {0}};
	struct event_level events[RUN_CGROUP_EVENTS];
	size_t n = run_cgroup_events(dir, events);
	char path[PATH_MAX + 32];

	add_number(list, dir, "memory.current", TRACE_LEVEL_CG_CURRENT);
	add_number(list, dir, "memory.max", TRACE_LEVEL_CG_MAX);
	add_number(list, dir, "memory.high", TRACE_LEVEL_CG_HIGH);
	add_number(list, dir, "memory.peak", TRACE_LEVEL_CG_PEAK);
	add_number(list, dir, "memory.swap.current", TRACE_LEVEL_CG_SWAP);
	add_number(list, dir, "memory.swap.max", TRACE_LEVEL_CG_SWAP_MAX);
	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	add_named(list, path, stat, 1);
	add_kernel(list, path);
	fit_parts(list);
	for (size_t i = 0; i < n; i++)
		add(list, events[i].key, events[i].value);
}

static void levels_1(const char *dir, struct list *list)
{
	/* total_*: with the groups below, as usage and limit count. */
	static const struct named stat[] = {{"total_rss", TRACE_LEVEL_CG_ANON},
	    {"total_cache", TRACE_LEVEL_CG_FILE}, {"total_shmem", TRACE_LEVEL_CG_SHMEM},
	    {"total_inactive_file", TRACE_LEVEL_CG_INACTIVE_FILE},
	    {"total_swap", TRACE_LEVEL_CG_SWAP}, {0}};
	static const struct named control[] = {{"oom_kill", TRACE_LEVEL_CG_OOM_KILL}, {0}};
	char path[PATH_MAX + 32];
	uint64_t limit = limit_of(1, dir), both;

	add_number(list, dir, "memory.usage_in_bytes", TRACE_LEVEL_CG_CURRENT);
	if (limit != NO_LIMIT)
		add(list, TRACE_LEVEL_CG_MAX, limit);
	/* Memory and swap together have a limit of their own, where swap is accounted. */
	if (limit != NO_LIMIT && read_number(dir, "memory.memsw.limit_in_bytes", &both))
		add(list, TRACE_LEVEL_CG_SWAP_MAX, num_less(both, limit));
	add_number(list, dir, "memory.max_usage_in_bytes", TRACE_LEVEL_CG_PEAK);
	add_number(list, dir, "memory.kmem.usage_in_bytes", TRACE_LEVEL_CG_KERNEL);
	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	add_named(list, path, stat, 1);
	snprintf(path, sizeof(path), "%s/memory.oom_control", dir);
	add_named(list, path, control, 1);
}

size_t run_cgroup_levels(const struct run_cgroup *cgroup, struct event_level *out, size_t max)
{
	struct list list = {.at = out, .max = max};

	if (cgroup->version == 2)
		levels_2(cgroup->dir, &list);
	else if (cgroup->version == 1)
		levels_1(cgroup->dir, &list);
	return list.count;
}

int run_cgroup_open(const struct run_cgroup *cgroup)
{
	char path[PATH_MAX + 32];

	if (!cgroup->version)
		return -1;
	snprintf(path, sizeof(path), "%s/%s", cgroup->dir,
	    cgroup->version == 2 ? "memory.current" : "memory.usage_in_bytes");
	return open(path, O_RDONLY | O_CLOEXEC);
}

bool run_cgroup_usage(int fd, uint64_t *out)
{
	char text[32], *end;
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	*out = strtoull(text, &end, 10);
	return end != text;
}

size_t run_system_levels(const char *root, struct event_level *out, size_t max)
{
	static const struct named names[] = {{"MemTotal", TRACE_LEVEL_SYS_TOTAL},
	    {"MemAvailable", TRACE_LEVEL_SYS_AVAILABLE}, {"SwapFree", TRACE_LEVEL_SYS_SWAP_FREE},
	    {0}};
	struct list list = {.at = out, .max = max};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	add_named(&list, path, names, 1024);
	return list.count;
}

size_t run_system_kills(const char *root, struct event_level *out, size_t max)
{
	static const struct named names[] = {{"oom_kill", TRACE_LEVEL_SYS_OOM_KILL}, {0}};
	struct list list = {.at = out, .max = max};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/vmstat", root);
	add_named(&list, path, names, 1);
	return list.count;
}
