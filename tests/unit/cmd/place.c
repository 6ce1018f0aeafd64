#include "place.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];
static pid_t owner;

static int drop(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void clean(void)
{
	if (*root && getpid() == owner)
		nftw(root, drop, 16, FTW_DEPTH | FTW_PHYS);
}

const char *place(void)
{
	if (!*root) {
		strcpy(root, "/var/tmp/whyoom-unit-XXXXXX");
		if (!mkdtemp(root))
			abort();
		owner = getpid();
		atexit(clean);
	}
	return root;
}

const char *place_path(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *p = paths[next++ % 4];

	snprintf(p, PATH_MAX, "%s/%s", place(), name);
	return p;
}

void place_write(const char *name, const void *data, size_t bytes)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", place(), name);
	for (char *p = path + strlen(place()) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	f = fopen(path, "w");
	if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f))
		abort();
}

void place_text(const char *name, const char *text)
{
	place_write(name, text, strlen(text));
}
