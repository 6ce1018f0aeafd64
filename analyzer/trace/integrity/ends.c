/* ends.c - how a process image ended if it could not say so itself, and whether it still runs. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "trace/reader.h"
#include "whyoom/trace.h"

void trace_see_child_end(struct trace *t, uint32_t how, uint32_t code)
{
	if (how != TRACE_END_EXIT && how != TRACE_END_SIGNAL)
		return;
	/* The parent's view counts: a process can still be killed after exit() began. */
	t->facts.end_how = how;
	t->facts.end_code = code;
	t->facts.running = false;
}

/* Does a line of /proc/PID/maps name the file? "start-end perms offset major:minor inode path" */
static bool line_names(const char *line, const struct source *file)
{
	const char *own = strrchr(file->path, '/'), *theirs = strrchr(line, '/');
	unsigned long long start, end, offset, number;
	unsigned major_number, minor_number;
	char perms[8];

	if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu", &start, &end, perms, &offset,
		&major_number, &minor_number, &number) != 7)
		return false;
	if (number != file->inode)
		return false;
	/* On overlay and btrfs the device differs from what fstat says; the name then decides. */
	own = own ? own + 1 : file->path;
	return makedev(major_number, minor_number) == file->device ||
	       (theirs && !strncmp(theirs + 1, own, strlen(own)));
}

/* Does /proc/PID/maps name the file? -1: it cannot be read. */
static int maps_name(const char *path, const struct source *file)
{
	FILE *maps = fopen(path, "re");
	char line[4352];
	int found = 0;

	if (!maps)
		return -1;
	while (!found && fgets(line, sizeof(line), maps))
		found = line_names(line, file);
	if (!found && ferror(maps))
		found = -1;
	fclose(maps);
	return found;
}

/* Return the start of the process with that pid, in CLOCK_BOOTTIME; 0: there is none. */
static uint64_t start_of(uint32_t pid)
{
	char path[64], text[1024], *p;
	unsigned long long ticks = 0;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	/* Count fields from behind the name, which may contain anything. */
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1,
		      " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		      "%*s %llu",
		      &ticks) != 1)
		return 0;
	if (strncmp(p + 1, " Z", 2) == 0 || strncmp(p + 1, " X", 2) == 0)
		return 0; /* a zombie */
	return ticks * (1000000000ull / (uint64_t)sysconf(_SC_CLK_TCK)) + 1;
}

bool trace_is_running(const struct trace *t)
{
	const struct trace_facts *f = &t->facts;
	char path[64];
	uint64_t began;
	int found;

	if (f->end_how != TRACE_END_NONE || !f->pid)
		return false;
	began = start_of(f->pid);
	if (!began)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/maps", f->pid);
	found = maps_name(path, &t->source);
	if (found >= 0)
		return found;
	/* Another user's process. If it began later, it only has the same pid. Both clocks run
	 * alike, except for the time that the machine was suspended. */
	return began <= f->start_mono_ns + 1000000000ull;
}

/* True if the process, `name` in /proc, has the file open or mapped. */
static bool holds(const char *name, const struct source *file)
{
	char path[300];
	struct dirent *entry;
	struct stat st;
	bool found;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%.20s/maps", name);
	found = maps_name(path, file) > 0;
	snprintf(path, sizeof(path), "/proc/%.20s/fd", name);
	fds = found ? NULL : opendir(path);
	while (fds && !found && (entry = readdir(fds))) {
		snprintf(path, sizeof(path), "/proc/%.20s/fd/%.20s", name, entry->d_name);
		found = !stat(path, &st) && st.st_ino == file->inode && st.st_dev == file->device;
	}
	if (fds)
		closedir(fds);
	return found;
}

uint32_t trace_holder(const struct trace *t)
{
	uint32_t pid = 0, self = (uint32_t)getpid();
	struct dirent *entry;
	DIR *all = opendir("/proc");

	while (all && !pid && (entry = readdir(all))) {
		uint32_t n = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (n && n != self && holds(entry->d_name, &t->source))
			pid = n;
	}
	if (all)
		closedir(all);
	return pid ? pid : trace_is_running(t) ? t->facts.pid : 0;
}
