/* find.c - the runs below a folder: see runs.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fleet/runs.h"

#define DEPTH_MAX 64u /* folders within folders */

static bool is_trace(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot != name && (!strcmp(dot, ".whyoom") || !strcmp(dot, ".whyooms"));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct folder {
	VEC(char *) inner;
	struct fleet_run run;
};

static void count_trace(struct fleet_run *run, const struct stat *st)
{
	uint64_t changed =
	    (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;

	run->bytes += (uint64_t)st->st_size;
	if (changed > run->changed_ns)
		run->changed_ns = changed;
}

static int read_folder(int fd, DIR *dir, struct folder *f)
{
	struct dirent *entry;
	struct stat st;
	bool traces = false;
	char *name;

	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISREG(st.st_mode) && is_trace(entry->d_name)) {
			count_trace(&f->run, &st);
			traces = true;
		} else if (S_ISDIR(st.st_mode)) {
			name = strdup(entry->d_name);
			if (!name || vec_push(&f->inner, name)) {
				free(name);
				return -ENOMEM;
			}
		}
	}
	return traces;
}

static int find(struct fleet_runs *runs, const char *path, unsigned levels, struct err *err)
{
	struct folder f = {0};
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct str inner = {0};

	if (!dir) {
		rc = err_set(err, -errno, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return rc;
	}
	rc = read_folder(fd, dir, &f);
	closedir(dir);
	if (rc == 1) {
		f.run.path = strdup(path);
		rc = f.run.path ? vec_push(&runs->list, f.run) : -ENOMEM;
	}
	if (f.inner.count)
		qsort(f.inner.items, f.inner.count, sizeof(*f.inner.items), by_name);
	for (size_t i = 0; i < f.inner.count && !rc && levels; i++) {
		str_clear(&inner);
		str_printf(&inner, "%s/%s", path, f.inner.items[i]);
		rc = inner.failed ? -ENOMEM : find(runs, inner.text, levels - 1, err);
		if (rc == -EACCES) /* a folder of another user's: the rest still counts */
			rc = 0;
	}
	for (size_t i = 0; i < f.inner.count; i++)
		free(f.inner.items[i]);
	vec_free(&f.inner);
	str_free(&inner);
	return rc == -ENOMEM ? err_set(err, rc, "no memory for the list of runs") : rc;
}

int fleet_runs_find(struct fleet_runs *runs, const char *path, bool below, struct err *err)
{
	size_t n = strlen(path);
	char *plain;
	int rc;

	while (n > 1 && path[n - 1] == '/')
		n--;
	plain = strndup(path, n);
	if (!plain)
		return err_set(err, -ENOMEM, "no memory for the list of runs");
	rc = find(runs, plain, below ? DEPTH_MAX : 0, err);
	free(plain);
	return rc;
}

void fleet_runs_free(struct fleet_runs *runs)
{
	for (size_t i = 0; i < runs->list.count; i++)
		free(runs->list.items[i].path);
	vec_free(&runs->list);
}
