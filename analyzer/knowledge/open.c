/*
 * open.c - finds the knowledge files: beside the program, so that a tarball can be unpacked
 * anywhere, and the user's own. WHYOOM_KNOWLEDGE names others instead of both.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "knowledge/knowledge.h"
#include "util/text/note.h"

static const char *const places[] = {
    "../" WHYOOM_DATADIR "/whyoom/knowledge", /* meson install */
    "../share/whyoom/knowledge", /* the tarball */
    "../knowledge/data", /* the build tree */
};

/* The functions below return 0, even if files were left out, or -ENOMEM: a verdict with less
 * knowledge than installed would differ. */

static int add_shipped(struct knowledge *k)
{
	char self[PATH_MAX], path[PATH_MAX + 64], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		int rc = knowledge_add_dir(k, path);

		if (!rc || rc == -ENOMEM)
			return rc;
	}
	note("no knowledge files: looked in %s/../" WHYOOM_DATADIR "/whyoom/knowledge", self);
	return 0;
}

/* $XDG_CONFIG_HOME/whyoom/knowledge, else ~/.config/whyoom/knowledge; it need not exist. */
static int add_own(struct knowledge *k)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char path[PATH_MAX];

	/* The XDG rules say to ignore relative paths. */
	if (config && *config == '/')
		snprintf(path, sizeof(path), "%s/whyoom/knowledge", config);
	else if (home && *home == '/')
		snprintf(path, sizeof(path), "%s/.config/whyoom/knowledge", home);
	else
		return 0;
	return knowledge_add_dir(k, path) == -ENOMEM ? -ENOMEM : 0;
}

/* Files and directories, separated by colons; an empty name stands for the shipped files. */
static int add_named(struct knowledge *k, const char *list)
{
	char path[PATH_MAX];
	struct stat st;
	struct err err;

	for (;;) {
		size_t bytes = strcspn(list, ":");
		int rc = 0;

		if (bytes == 0) {
			rc = add_shipped(k);
		} else if (bytes < sizeof(path)) {
			snprintf(path, sizeof(path), "%.*s", (int)bytes, list);
			if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
				rc = knowledge_add_dir(k, path);
				if (rc)
					err_set(&err, rc, "%s: %s", path, strerror(-rc));
			} else {
				rc = knowledge_add(k, path, &err);
			}
			if (rc && rc != -ENOMEM)
				note("left out: %s", err.text);
		}
		if (rc == -ENOMEM || !list[bytes])
			return rc == -ENOMEM ? rc : 0;
		list += bytes + 1;
	}
}

struct knowledge *knowledge_open(void)
{
	const char *named = getenv("WHYOOM_KNOWLEDGE");
	struct knowledge *k = knowledge_new();

	if (!k)
		return NULL;
	if (!(named ? add_named(k, named) : add_shipped(k)) && (named || !add_own(k)))
		return k;
	knowledge_free(k);
	return NULL;
}
