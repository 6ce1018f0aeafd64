/*
 * levels.c - see levels.h. Knows the layouts of /proc and of cgroup v1 and v2.
 */
#include "levels/levels.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/reserve.h"
#include "base/shim_state.h"
#include "base/sys.h"
#include "base/text.h"
#include "levels/levels_malloc.h"
#include "levels/levels_python.h"
#include "levels/shm.h"
#include "trace/definitions.h"
#include "trace/trace_file.h"
#include "whyoom/trace.h"

#define PATH 768

/* The cgroup's directory; "": none is visible. */
static char cgroup[PATH];
static size_t cgroup_mount; /* length of the mount point at its start */
static int cgroup_version;

/* Not on the host's stack, which may be small. */
static struct {
	bool busy;
	char text[4096];
	char directory[PATH];
	char path[PATH + 64];
} scratch;

static const char *parse_number(const char *s, uint64_t *out)
{
	uint64_t v = 0;

	while (*s == ' ' || *s == '\t')
		s++;
	if (*s < '0' || *s > '9')
		return NULL;
	for (; *s >= '0' && *s <= '9'; s++)
		v = v * 10 + (uint64_t)(*s - '0');
	*out = v;
	return s;
}

static bool copy(char *out, size_t size, const char *from, size_t n)
{
	if (n + 1 > size)
		return false;
	memcpy(out, from, n);
	out[n] = 0;
	return true;
}

/* Find the process's own memory cgroup in /proc/self/cgroup. Returns the version; 0: none. */
static int own_path(char *text, char *out)
{
	int version = 0;

	for (char *line = text; line && *line; line = strchr(line, '\n')) {
		char *names, *path, *end;

		if (*line == '\n')
			line++;
		names = strchr(line, ':');
		path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			break;
		end = strchr(path, '\n');
		if (!end)
			end = path + strlen(path);
		if (names + 1 == path && version == 0 &&
		    copy(out, PATH, path + 1, (size_t)(end - path - 1)))
			version = 2;
		for (char *n = names + 1; n < path; n++)
			if ((n[-1] == ':' || n[-1] == ',') && !strncmp(n, "memory", 6) &&
			    (n[6] == ':' || n[6] == ',') &&
			    copy(out, PATH, path + 1, (size_t)(end - path - 1)))
				version = 1;
		line = path;
	}
	return version;
}

static char *field(char *line, int n)
{
	while (n-- > 0 && line) {
		line = strchr(line, ' ');
		if (line)
			line++;
	}
	return line;
}

/* Find the hierarchy's mount: fields 4 and 5 of mountinfo are the root within the hierarchy and the
 * mount point; the type and the options follow " - ". */
static bool find_mount(char *text, int version, const char *path)
{
	for (char *line = text, *next; line && *line; line = next) {
		char *root, *mount, *type, *root_end, *mount_end;
		size_t root_bytes, mount_bytes, rest;

		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		root = field(line, 3);
		mount = field(line, 4);
		type = strstr(line, " - ");
		if (!root || !mount || !type)
			continue;
		type += 3;
		if (version == 2 ? strncmp(type, "cgroup2 ", 8) != 0
				 : (strncmp(type, "cgroup ", 7) != 0 || !strstr(type, "memory")))
			continue;
		root_end = strchr(root, ' ');
		mount_end = strchr(mount, ' ');
		root_bytes = (size_t)(root_end - root);
		mount_bytes = (size_t)(mount_end - mount);
		if (root_bytes == 1)
			root_bytes = 0;
		/* a container's mount may show only its own part of the tree */
		if (strncmp(path, root, root_bytes) != 0)
			path = "";
		else
			path += root_bytes;
		rest = strlen(path);
		if (rest == 1)
			rest = 0;
		if (mount_bytes + rest + 1 > sizeof(cgroup))
			return false;
		memcpy(cgroup, mount, mount_bytes);
		memcpy(cgroup + mount_bytes, path, rest);
		cgroup[mount_bytes + rest] = 0;
		cgroup_mount = mount_bytes;
		return true;
	}
	return false;
}

static bool cgroup_file(const char *directory, const char *name, char *text, size_t size)
{
	char *path = scratch.path;
	size_t n = strlen(directory), m = strlen(name);

	if (n + m + 2 > sizeof(scratch.path))
		return false;
	memcpy(path, directory, n);
	path[n] = '/';
	memcpy(path + n + 1, name, m + 1);
	return sys_read_file(path, text, size) > 0;
}

static bool cgroup_number(const char *directory, const char *name, uint64_t *out)
{
	char text[64];

	return cgroup_file(directory, name, text, sizeof(text)) && parse_number(text, out);
}

/* Return the smallest limit up to the mount point. v1 writes a huge number for none. */
static bool cgroup_limit(const char *name, uint64_t *out)
{
	char *directory = scratch.directory;
	uint64_t limit = UINT64_MAX, value;

	memcpy(directory, cgroup, PATH);
	for (;;) {
		size_t n = strlen(directory);

		if (cgroup_number(directory, name, &value) && value < limit)
			limit = value;
		if (n <= cgroup_mount)
			break;
		while (n > cgroup_mount && directory[n - 1] != '/')
			n--;
		directory[n > cgroup_mount ? n - 1 : cgroup_mount] = 0;
	}
	*out = limit;
	return limit < 1ull << 60;
}

static void info_limit(const char *key, int which)
{
	uint64_t v = sys_limit(which);
	char text[24];

	if (v == RLIM64_INFINITY)
		memcpy(text, "unlimited", 10);
	else
		text_append_number(text, text + sizeof(text), v);
	definitions_info(key, text);
}

void levels_init(void)
{
	enum { TEXT = 65536 };
	char *path, number[24], *text = sys_pages(TEXT + PATH);
	uint64_t v;

	cgroup[0] = 0;
	levels_malloc_init();
	levels_python_init();
	shm_forked();
	scratch.busy = false; /* in the child of a fork another thread may have held it */
	info_limit("limit.as", RLIMIT_AS);
	info_limit("limit.data", RLIMIT_DATA);
	info_limit("limit.stack", RLIMIT_STACK);
	info_limit("limit.memlock", RLIMIT_MEMLOCK);
	if (!text)
		return;
	path = text + TEXT;
	if (sys_read_file("/proc/self/cgroup", text, TEXT) > 0 &&
	    (cgroup_version = own_path(text, path)) &&
	    sys_read_file("/proc/self/mountinfo", text, TEXT) > 0 &&
	    find_mount(text, cgroup_version, path)) {
		definitions_info("cgroup.version", cgroup_version == 2 ? "2" : "1");
		definitions_info("cgroup.path", path);
		if (cgroup_limit(
			cgroup_version == 2 ? "memory.max" : "memory.limit_in_bytes", &v)) {
			text_append_number(number, number + sizeof(number), v);
			definitions_info("cgroup.max", number);
		}
	}
	sys_pages_free(text, TEXT + PATH);
}

/* Return the bytes in a line "name value" of a cgroup's file, or "Name:  value kB". */
static bool line_value(const char *text, const char *name, uint64_t *out)
{
	size_t n = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		if (!strncmp(line, name, n) && (line[n] == ' ' || line[n] == '\t')) {
			const char *end = parse_number(line + n, out);

			if (end && !strncmp(end, " kB", 3))
				*out *= 1024;
			return end;
		}
	}
	return false;
}

static bool read_usage(uint64_t *used)
{
	return cgroup_number(
	    cgroup, cgroup_version == 2 ? "memory.current" : "memory.usage_in_bytes", used);
}

/* The cgroup's limits and the parts of its usage. */
static unsigned read_cgroup(struct level *out, unsigned n)
{
	static const struct {
		const char *v1, *v2;
		uint32_t key;
	} details[] = {
	    {"total_rss", "anon", TRACE_LEVEL_CG_ANON},
	    {"total_cache", "file", TRACE_LEVEL_CG_FILE},
	    {NULL, "kernel", TRACE_LEVEL_CG_KERNEL},
	    {"total_shmem", "shmem", TRACE_LEVEL_CG_SHMEM},
	    {"total_inactive_file", "inactive_file", TRACE_LEVEL_CG_INACTIVE_FILE},
	};
	bool v2 = cgroup_version == 2;
	char *text = scratch.text;
	uint64_t v;

	if (cgroup_limit(v2 ? "memory.max" : "memory.limit_in_bytes", &v))
		n = level_put(out, n, TRACE_LEVEL_CG_MAX, v);
	if (v2 && cgroup_limit("memory.high", &v))
		n = level_put(out, n, TRACE_LEVEL_CG_HIGH, v);
	if (cgroup_file(cgroup, "memory.stat", text, sizeof(scratch.text)))
		for (size_t i = 0; i < sizeof(details) / sizeof(details[0]); i++) {
			const char *name = v2 ? details[i].v2 : details[i].v1;

			if (name && line_value(text, name, &v))
				n = level_put(out, n, details[i].key, v);
		}
	if (v2 && cgroup_file(cgroup, "memory.events", text, sizeof(scratch.text))) {
		if (line_value(text, "oom", &v))
			n = level_put(out, n, TRACE_LEVEL_CG_OOM, v);
		if (line_value(text, "oom_kill", &v))
			n = level_put(out, n, TRACE_LEVEL_CG_OOM_KILL, v);
	} else if (!v2 && cgroup_file(cgroup, "memory.oom_control", text, sizeof(scratch.text))) {
		if (line_value(text, "oom_kill", &v))
			n = level_put(out, n, TRACE_LEVEL_CG_OOM_KILL, v);
	}
	return n;
}

uint64_t levels_vsize(void)
{
	char text[64];
	uint64_t pages;

	if (sys_read_file("/proc/self/statm", text, sizeof(text)) <= 0 ||
	    !parse_number(text, &pages))
		return 0;
	return pages * getauxval(AT_PAGESZ);
}

/* A killed process cannot be asked any more. So everything is read when the process or its
 * cgroup has grown by an eighth and by more than a small program ever does. */
#define GROWN_LEAST (16u << 20)

static bool has_grown(uint64_t *last, uint64_t now)
{
	bool grown = *last && now > *last + *last / 8 + GROWN_LEAST;

	if (grown || !*last)
		*last = now;
	return grown;
}

/* One thread at a time; another one, or a handler, goes without. A process that is refused
 * memory may do this only once: it waits up to 5 ms. */
static bool enter(bool wait)
{
	uint64_t until = wait ? clock_ticks() + tick_clock.ticks_100ms / 20 : 0;

	while (__atomic_exchange_n(&scratch.busy, true, __ATOMIC_ACQUIRE)) {
		if (!wait || clock_ticks() > until)
			return false;
		sys_yield();
	}
	return true;
}

static void leave(void)
{
	__atomic_store_n(&scratch.busy, false, __ATOMIC_RELEASE);
}

unsigned levels_read(struct level *out, bool all)
{
	/* under scratch.busy: usage when everything was read last */
	static uint64_t process_rss, cgroup_usage;
	uint64_t page, size, rss, trace;
	char *text = scratch.text;
	const char *s = text;
	unsigned n = 0;

	if (!enter(all))
		return 0;
	if (sys_read_file("/proc/self/statm", text, 256) > 0 && (s = parse_number(s, &size)) &&
	    parse_number(s, &rss)) {
		page = getauxval(AT_PAGESZ);
		n = level_put(out, n, TRACE_LEVEL_RSS, rss * page);
		n = level_put(out, n, TRACE_LEVEL_VSIZE, size * page);
		all |= has_grown(&process_rss, rss * page);
	}
	if (cgroup[0] && read_usage(&size)) {
		n = level_put(out, n, TRACE_LEVEL_CG_CURRENT, size);
		all |= has_grown(&cgroup_usage, size);
	}
	size = sys_own_bytes();
	trace = trace_file_bytes() - reserve_bytes();
	n = level_put(out, n, TRACE_LEVEL_WHYOOM, size + trace + reserve_bytes());
	n = level_put(out, n, TRACE_LEVEL_WHYOOM_TRACE, trace);
	n = level_put(out, n, TRACE_LEVEL_WHYOOM_ANON, size);
	if (all && sys_read_file("/proc/self/status", text, sizeof(scratch.text)) > 0) {
		static const struct {
			const char *name;
			uint32_t key;
		} rows[] = {
		    {"VmPeak:", TRACE_LEVEL_VSIZE_PEAK},
		    {"VmData:", TRACE_LEVEL_DATA},
		    {"VmStk:", TRACE_LEVEL_STACKS},
		    {"RssAnon:", TRACE_LEVEL_RSS_ANON},
		    {"RssFile:", TRACE_LEVEL_RSS_FILE},
		    {"RssShmem:", TRACE_LEVEL_RSS_SHMEM},
		    {"VmSwap:", TRACE_LEVEL_SWAP},
		    {"VmPTE:", TRACE_LEVEL_PAGETABLES},
		};

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (line_value(text, rows[i].name, &size))
				n = level_put(out, n, rows[i].key, size);
		if (line_value(text, "Threads:", &size))
			n = level_put(out, n, TRACE_LEVEL_THREADS, size);
		n = level_put(out, n, TRACE_LEVEL_THREADS_STARTED,
		    __atomic_load_n(&shim.threads_started, __ATOMIC_RELAXED));
	}
	if (all) {
		if ((size = sys_limit(RLIMIT_AS)) != RLIM64_INFINITY)
			n = level_put(out, n, TRACE_LEVEL_LIMIT_AS, size);
		if ((size = sys_limit(RLIMIT_DATA)) != RLIM64_INFINITY)
			n = level_put(out, n, TRACE_LEVEL_LIMIT_DATA, size);
	}
	if (all && cgroup[0])
		n = read_cgroup(out, n);
	n += shm_read(out + n);
	leave();
	return n;
}

/* Overcommitting is off with mode 2 only: Documentation/mm/overcommit-accounting.rst in linux. */
static unsigned read_promises(struct level *out, unsigned n)
{
	char *text = scratch.text;
	uint64_t mode, limit, committed;

	if (sys_read_file("/proc/sys/vm/overcommit_memory", text, 32) <= 0 ||
	    !parse_number(text, &mode) || mode != 2 ||
	    sys_read_file("/proc/meminfo", text, sizeof(scratch.text)) <= 0 ||
	    !line_value(text, "CommitLimit:", &limit) ||
	    !line_value(text, "Committed_AS:", &committed))
		return n;
	n = level_put(out, n, TRACE_LEVEL_SYS_COMMIT_LIMIT, limit);
	return level_put(out, n, TRACE_LEVEL_SYS_COMMITTED, committed);
}

unsigned levels_refused(struct level *out)
{
	static uint64_t due; /* under scratch.busy */
	uint64_t mappings = 0, most, begun = sys_clock_ns(CLOCK_MONOTONIC), took;
	char *text = scratch.text;
	unsigned n = 0;
	long got = 0;
	int fd;

	if (!enter(false))
		return 0;
	if (begun < due) {
		leave();
		return 0;
	}
	if (sys_read_file("/proc/sys/vm/max_map_count", text, 32) > 0 &&
	    parse_number(text, &most) && (fd = sys_open("/proc/self/maps", O_RDONLY, 0)) >= 0) {
		while (
		    (got = sys_call(SYS_read, fd, (long)text, sizeof(scratch.text), 0, 0, 0)) > 0)
			for (long i = 0; i < got; i++)
				mappings += text[i] == '\n';
		sys_close(fd);
		if (got == 0) {
			n = level_put(out, n, TRACE_LEVEL_MAPPINGS, mappings);
			n = level_put(out, n, TRACE_LEVEL_LIMIT_MAPPINGS, most);
		}
	}
	n = read_promises(out, n);
	took = sys_clock_ns(CLOCK_MONOTONIC) - begun;
	due = begun + 50 * took; /* a program that fails all the time does not pay each time */
	leave();
	return n;
}
