/* traces.c - see traces.h. */
#include "cmd/common/traces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "util/progress.h"

int traces_of_process(const char *pid, char path[PATH_MAX], struct err *err)
{
	char maps[64], *line = NULL;
	size_t room = 0;
	bool found = false;
	FILE *f;

	snprintf(maps, sizeof(maps), "/proc/%s/maps", pid);
	f = fopen(maps, "re");
	if (!f)
		return err_set(err, -errno, "process %s: %s", pid,
		    errno == ENOENT ? "there is none" : strerror(errno));
	while (!found && getline(&line, &room, f) > 0) {
		char *name = strchr(line, '/'), *end = name ? strstr(name, ".whyoom\n") : NULL;

		if (!end)
			continue;
		end[strlen(".whyoom")] = '\0';
		found = (size_t)snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
	}
	free(line);
	fclose(f);
	return found ? 0
		     : err_set(err, -ENOENT,
			   "process %s is not recorded: start it with `whyoom run`", pid);
}

static int open_one(const char *path, struct trace_set *out, struct err *err)
{
	char found[PATH_MAX];
	int rc;

	if (!*path || path[strspn(path, "0123456789")] || !access(path, F_OK))
		return trace_set_open(path, out, err);
	rc = traces_of_process(path, found, err);
	return rc ? rc : trace_set_open(found, out, err);
}

int traces_open(struct traces *t, char *const *paths, size_t count, struct err *err)
{
	size_t images = 0;
	int rc;

	memset(t, 0, sizeof(*t));
	t->parts = calloc(count + 1, sizeof(*t->parts));
	if (!t->parts)
		return err_set(err, -ENOMEM, "no memory for the traces");
	for (size_t i = 0; i < count; i++) {
		rc = open_one(paths[i], &t->parts[i], err);
		if (rc)
			goto fail;
		t->count++;
		images += t->parts[i].count;
		t->set.left_out += t->parts[i].left_out;
		t->set.left_out_bytes += t->parts[i].left_out_bytes;
		if (!t->set.supervisor)
			t->set.supervisor = t->parts[i].supervisor;
	}
	t->set.path = paths[0];
	t->set.images = calloc(images + 1, sizeof(*t->set.images));
	if (!t->set.images) {
		rc = err_set(err, -ENOMEM, "no memory for the traces");
		goto fail;
	}
	for (size_t i = 0; i < t->count; i++)
		for (size_t k = 0; k < t->parts[i].count; k++)
			t->set.images[t->set.count++] = t->parts[i].images[k];
	return 0;
fail:
	traces_close(t);
	return rc;
}

void traces_close(struct traces *t)
{
	for (size_t i = 0; i < t->count; i++)
		trace_set_close(&t->parts[i]);
	free(t->parts);
	free(t->set.images);
	memset(t, 0, sizeof(*t));
}

int traces_show(int parsed, int argc, char **argv,
    int (*show)(const struct trace_set *set, const void *request, struct err *err),
    const void *request)
{
	struct traces traces;
	struct err err = {""};
	int rc;

	if (parsed)
		return parsed < 0 ? CMD_DONE : parsed;
	rc = traces_open(&traces, argv + optind, (size_t)(argc - optind), &err);
	if (!rc) {
		rc = show(&traces.set, request, &err);
		traces_close(&traces);
	}
	progress_end();
	return rc ? cmd_error(&err) : CMD_DONE;
}
