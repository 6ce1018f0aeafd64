/* files.h - knowledge files made for one test, in a directory of their own. */
#ifndef TESTS_UNIT_KNOWLEDGE_FILES_H
#define TESTS_UNIT_KNOWLEDGE_FILES_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct files {
	char dir[64];
	char path[160]; /* of the last one written */
};

static inline int files_make(struct files *f)
{
	strcpy(f->dir, "/tmp/whyoom-know-XXXXXX");
	return mkdtemp(f->dir) ? 0 : -1;
}

/* The path of the file, or NULL. */
static inline const char *files_write(struct files *f, const char *name, const char *text)
{
	FILE *out;

	snprintf(f->path, sizeof(f->path), "%s/%s", f->dir, name);
	out = fopen(f->path, "w");
	if (!out)
		return NULL;
	fputs(text, out);
	fclose(out);
	return f->path;
}

static inline void files_remove(struct files *f)
{
	DIR *dir = opendir(f->dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(f->dir);
}

#endif
