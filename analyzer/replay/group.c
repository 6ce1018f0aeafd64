/* group.c - see group.h. */
#include "replay/group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/unfinished.h"

#define TRIES 100 /* to remove a group: a killed process may still be in it */
#define PAUSE_US 10000

static int write_file(const struct group *g, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	int fd, rc = 0;

	snprintf(path, sizeof(path), "%s/%s", g->dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* The kernel does not kill for memory that goes to swap. Without swap, the files are missing. */
static void without_swap(const struct group *g)
{
	if (g->version == 2) {
		write_file(g, "memory.swap.max", "0");
		return;
	}
	write_file(g, "memory.swappiness", "0");
	write_file(g, "memory.oom_control", "0"); /* it kills, and does not wait */
}

int group_make(const struct group_parent *parent, struct group *out, struct err *err)
{
	char path[PATH_MAX + 64];
	int n;

	*out = (struct group){0};
	if (!parent->version)
		return err_set(err, -ENOENT, "no memory controller is mounted here");
	n = snprintf(out->dir, sizeof(out->dir), "%s/whyoom-replay-%d", parent->dir, (int)getpid());
	if (n < 0 || (size_t)n >= sizeof(out->dir))
		return err_set(err, -ENAMETOOLONG, "%.200s: the name is too long", parent->dir);
	unfinished_directory(out->dir);
	if (mkdir(out->dir, 0755) && errno != EEXIST) {
		unfinished_done(out->dir);
		return err_set(err, -errno, "cannot make %.200s: %s", out->dir, strerror(errno));
	}
	out->version = parent->version;
	/* Version 2 has the files only where the parent group shares its memory out. */
	snprintf(path, sizeof(path), "%s/%s", out->dir, group_limit_file(out->version));
	if (access(path, W_OK)) {
		int error = errno;

		group_remove(out);
		return err_set(
		    err, -error, "cannot limit memory in %.200s: %s", parent->dir, strerror(error));
	}
	without_swap(out);
	return 0;
}

void group_remove(struct group *g)
{
	for (int n = 0; g->version && n < TRIES && rmdir(g->dir) && errno == EBUSY; n++)
		usleep(PAUSE_US);
	if (g->version)
		unfinished_done(g->dir);
	g->version = 0;
}

int group_enter(const struct group *g)
{
	return write_file(g, "cgroup.procs", "0");
}

bool group_killed(const struct group *g)
{
	char path[PATH_MAX + 64], line[128];
	unsigned long long count = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", g->dir,
	    g->version == 2 ? "memory.events" : "memory.oom_control");
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "oom_kill %llu", &count) == 1)
			break;
	if (f)
		fclose(f);
	return count > 0;
}
