/* proc.c - fuzz target: the supervisor's reading of /proc and cgroups, and of the program to
 * start. The files that it opens are sections of the input, "== NAME\n" and the content, by the
 * last part of their path (meson.build has the linker replace open() and fopen()). */
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/run/program.h"
#include "cmd/supervise/cgroup.h"
#include "cmd/supervise/proc.h"
#include "target.h"

#define PID 4711
#define LEVELS 64u
#define ROOT "/whyoom-fuzz" /* before the search there */

int __wrap_open64(const char *path, int flags, ...);
FILE *__wrap_fopen64(const char *path, const char *mode);
int __real_open64(const char *path, int flags, ...);
FILE *__real_fopen64(const char *path, const char *mode);

static const char *text; /* NUL behind its end */

static bool is_ours(const char *path)
{
	return !strncmp(path, ROOT "/", sizeof(ROOT)) || !strncmp(path, "/proc/4711/", 11);
}

/* A section's text. */
static const char *section(const char *path, size_t *bytes)
{
	const char *name = strrchr(path, '/') + 1, *end;
	size_t n = strlen(name);

	for (const char *at = text; (at = strstr(at, "== "));) {
		at += 3;
		if (strncmp(at, name, n) || at[n] != '\n')
			continue;
		at += n + 1;
		end = strstr(at, "== ");
		*bytes = end ? (size_t)(end - at) : strlen(at);
		return at;
	}
	return NULL;
}

static int memory_of(const char *path)
{
	size_t bytes;
	const char *at = section(path, &bytes);
	int fd;

	if (!at)
		return -1;
	fd = memfd_create("section", MFD_CLOEXEC);
	if (fd < 0 || pwrite(fd, at, bytes, 0) != (ssize_t)bytes)
		abort();
	return fd;
}

int __wrap_open64(const char *path, int flags, ...)
{
	va_list more;
	int mode;

	if (is_ours(path))
		return memory_of(path);
	va_start(more, flags);
	mode = flags & O_CREAT ? va_arg(more, int) : 0;
	va_end(more);
	return __real_open64(path, flags, mode);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	int fd;

	if (!is_ours(path))
		return __real_fopen64(path, mode);
	fd = memory_of(path);
	return fd < 0 ? NULL : fdopen(fd, "r");
}

static void look_at_cgroups(void)
{
	struct event_level levels[LEVELS];
	struct run_cgroup group;

	run_cgroup_find(ROOT, PID, &group);
	if (strlen(group.path) >= sizeof(group.path) || strlen(group.dir) >= sizeof(group.dir))
		abort();
	run_cgroup_levels(&group, levels, LEVELS);
	/* The hierarchy may be mounted anywhere: the mount point is the one found. */
	for (group.version = 1; group.version <= 2; group.version++) {
		strcpy(group.dir, ROOT);
		for (size_t max = 0; max < 4; max++)
			if (run_cgroup_levels(&group, levels, max) > max)
				abort();
		run_cgroup_levels(&group, levels, LEVELS);
	}
	run_system_levels(ROOT, levels, LEVELS);
	run_system_kills(ROOT, levels, LEVELS);
}

static void look_at_process(void)
{
	size_t (*const reads[])(pid_t, struct event_level *, size_t) = {
	    run_proc_status, run_proc_rollup, run_proc_maps, run_proc_threads};
	struct event_level levels[LEVELS];
	struct run_proc_stat stat;

	for (size_t i = 0; i < sizeof(reads) / sizeof(*reads); i++)
		for (size_t max = 0; max < 20; max += 1 + max)
			if (reads[i](PID, levels, max) > max)
				abort();
	run_proc_stat(PID, &stat);
	run_proc_pending(PID, 15);
	run_proc_maps_file(PID, 0x801, 1234);
	run_proc_maps_trace(PID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct run_program program;
	char *copy = malloc(bytes + 1);

	if (!copy)
		abort();
	memcpy(copy, data, bytes);
	copy[bytes] = '\0';
	text = copy;
	look_at_cgroups();
	look_at_process();
	free(copy);
	text = "";
	run_program_look(target_file(data, bytes), &program);
	return 0;
}
