/* scratch.c - see scratch.h. */
#include "scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

static char top[64];

int scratch_setup(void **state)
{
	strcpy(top, "/var/tmp/whyoom-unit-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

int scratch_teardown(void **state)
{
	return chdir("/") || nftw(top, drop, 16, FTW_DEPTH | FTW_PHYS) ? -1 : 0;
}

const char *scratch(const char *name)
{
	static char buffers[16][PATH_MAX];
	static unsigned at;
	char *to = buffers[at++ % 16];

	snprintf(to, PATH_MAX, "%s%s%s", top, *name ? "/" : "", name);
	return to;
}

const char *scratch_dir(const char *name)
{
	const char *path = scratch(name);
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%s/", path);
	for (char *p = part + strlen(top) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(part, 0777) && errno != EEXIST)
			fail_msg("mkdir %s: %s", part, strerror(errno));
		*p = '/';
	}
	return path;
}

const char *scratch_bytes(const char *name, const void *bytes, unsigned long count)
{
	const char *path = scratch(name), *slash = strrchr(name, '/');
	char parent[PATH_MAX];
	int fd;

	if (slash) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
		scratch_dir(parent);
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, bytes, count) != (ssize_t)count)
		fail_msg("write %s: %s", path, strerror(errno));
	close(fd);
	return path;
}

const char *scratch_file(const char *name, const char *text)
{
	return scratch_bytes(name, text, strlen(text));
}

const char *scratch_read(const char *path)
{
	static char buffers[4][1 << 16];
	static unsigned at;
	char *to = buffers[at++ % 4];
	FILE *f = fopen(path, "re");

	if (!f)
		return NULL;
	to[fread(to, 1, sizeof(buffers[0]) - 1, f)] = '\0';
	fclose(f);
	return to;
}

unsigned scratch_names(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned count = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		count += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return count;
}

bool scratch_has(const char *name)
{
	struct stat st;

	return !lstat(scratch(name), &st);
}
