/*
 * frames.c - see frames.h. Files are opened as the target sees them, and only if they are still the
 * ones that it has mapped.
 */
#include "attach/frames.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct frames {
	Dwfl *dwfl;
	const struct target *target;
};

struct walk {
	uint64_t *pcs;
	size_t count, most;
	bool cut;
};

/* libdwfl hands no argument of ours to this. One target at a time is opened. */
static const struct target *opening;

static int open_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
    char **file_name, Elf **elf)
{
	const struct target_map *map = opening ? target_map_at(opening, base) : NULL;
	char path[PATH_MAX];
	struct stat st;
	int fd;

	if (!strncmp(name, "[vdso", 5))
		return dwfl_linux_proc_find_elf(module, user, name, base, file_name, elf);
	if (!map || *name != '/' ||
	    snprintf(path, sizeof(path), "/proc/%d/root%s", (int)opening->pid, name) >=
		(int)sizeof(path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_ino != map->inode) {
		close(fd);
		return -1;
	}
	*file_name = strdup(path);
	return fd;
}

/* Debug information is not needed: .eh_frame is in what is loaded. */
static int no_debug_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
    const char *file_name, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)user, (void)name, (void)base, (void)file_name, (void)link, (void)crc;
	(void)found;
	return -1;
}

static const Dwfl_Callbacks callbacks = {.find_elf = open_file, .find_debuginfo = no_debug_file};

/* Reads a module's tables now, while nothing is stopped, and not at the first stack. */
static int prepare(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, void *data)
{
	Dwarf_Addr bias;

	(void)user, (void)name, (void)base, (void)data;
	dwfl_module_eh_cfi(module, &bias);
	return DWARF_CB_OK;
}

struct frames *frames_open(const struct target *target)
{
	struct frames *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->target = target;
	f->dwfl = dwfl_begin(&callbacks);
	if (!f->dwfl || dwfl_linux_proc_report(f->dwfl, target->pid) ||
	    dwfl_report_end(f->dwfl, NULL, NULL) ||
	    dwfl_linux_proc_attach(f->dwfl, target->pid, true)) {
		frames_close(f);
		return NULL;
	}
	opening = target;
	dwfl_getmodules(f->dwfl, prepare, NULL, 0);
	opening = NULL;
	return f;
}

void frames_close(struct frames *f)
{
	if (f && f->dwfl)
		dwfl_end(f->dwfl);
	free(f);
}

static int take(Dwfl_Frame *frame, void *data)
{
	struct walk *walk = data;
	Dwarf_Addr pc;
	bool activation;

	if (!dwfl_frame_pc(frame, &pc, &activation))
		return DWARF_CB_ABORT;
	if (walk->count == walk->most) {
		walk->cut = true;
		return DWARF_CB_ABORT;
	}
	/* A return address may lie behind the end of the function that called. */
	walk->pcs[walk->count++] = activation ? pc : pc - 1;
	return DWARF_CB_OK;
}

size_t frames_of(struct frames *f, pid_t tid, uint64_t *pcs, size_t most)
{
	struct walk walk = {.pcs = pcs, .most = most};
	int rc;

	opening = f->target;
	rc = dwfl_getthread_frames(f->dwfl, tid, take, &walk);
	opening = NULL;
	return rc || walk.cut ? 0 : walk.count;
}
