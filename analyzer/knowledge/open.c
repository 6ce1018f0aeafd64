/*
 * open.c - where knowledge files are: beside the program, so that an unpacked tarball can lie
 * anywhere, and the user's own. WHYOOM_KNOWLEDGE names others in place of both.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "knowledge/knowledge.h"
#include "util/note.h"

static const char *const places[] = {
    "../" WHYOOM_DATADIR "/whyoom/knowledge", /* meson install */
    "../share/whyoom/knowledge", /* the tarball */
    "../knowledge/data", /* the build tree */
};

/* What is shipped. */
static void add_shipped(struct knowledge *k)
{
	char self[PATH_MAX], path[PATH_MAX + 64], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), "%s/%s", self, places[i]);
		if (knowledge_add_dir(k, path) == 0)
			return;
	}
	note("no knowledge files: looked in %s/../" WHYOOM_DATADIR "/whyoom/knowledge", self);
}

/* $XDG_CONFIG_HOME/whyoom/knowledge, else ~/.config/whyoom/knowledge; it need not exist. */
static void add_own(struct knowledge *k)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char path[PATH_MAX];

	/* The XDG rules: what is not absolute is to be ignored. */
	if (config && *config == '/')
		snprintf(path, sizeof(path), "%s/whyoom/knowledge", config);
	else if (home && *home == '/')
		snprintf(path, sizeof(path), "%s/.config/whyoom/knowledge", home);
	else
		return;
	knowledge_add_dir(k, path);
}

/* Files and directories, separated by colons; an empty one names what is shipped. */
static void add_named(struct knowledge *k, const char *list)
{
	char path[PATH_MAX];
	struct stat st;
	struct err err;
	int rc;

	for (;;) {
		size_t bytes = strcspn(list, ":");

		if (bytes == 0) {
			add_shipped(k);
		} else if (bytes < sizeof(path)) {
			snprintf(path, sizeof(path), "%.*s", (int)bytes, list);
			if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
				rc = knowledge_add_dir(k, path);
				if (rc)
					err_set(&err, rc, "%s: %s", path, strerror(-rc));
			} else {
				rc = knowledge_add(k, path, &err);
			}
			if (rc)
				note("left out: %s", err.text);
		}
		if (!list[bytes])
			return;
		list += bytes + 1;
	}
}

struct knowledge *knowledge_open(void)
{
	const char *named = getenv("WHYOOM_KNOWLEDGE");
	struct knowledge *k = knowledge_new();

	if (!k)
		return NULL;
	if (named) {
		add_named(k, named);
	} else {
		add_shipped(k);
		add_own(k);
	}
	return k;
}
