/* save.c - writes the kept units as `whyoom run` would have written them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "reduce/reduce.h"
#include "trace/writer.h"
#include "util/unfinished.h"

static int write_feed(
    struct trace *of, struct feed feed, const struct view *view, const char *path, struct err *err)
{
	struct trace_writer *w = trace_writer_new(of);
	struct event e;
	int rc = w ? 0 : err_set(err, -ENOMEM, "no memory to write the trace");

	for (uint32_t i = 0; view && i < view->info_count && !rc; i++)
		rc = trace_writer_info(w, view->infos[i].key, view->infos[i].value);
	if (!rc)
		rc = feed.rewind(feed.self, err);
	while (!rc && (rc = feed.next(feed.self, &e, err)) == 1)
		rc = trace_writer_add(w, &e, err);
	if (!rc)
		rc = trace_writer_save(w, path, err);
	trace_writer_free(w);
	return rc;
}

int save_traces(const struct search *s, const struct trace_set *set, const char *path,
    struct view *view, struct err *err)
{
	char file[4096];
	int rc = 0;

	rc = unfinished_directory(path);
	if (rc || mkdir(path, 0700)) {
		rc = rc ? rc : -errno;
		unfinished_done(path);
		return err_set(err, rc, "%s: %s", path, strerror(-rc));
	}
	snprintf(
	    file, sizeof(file), "%.4000s/%u.%u.whyoom", path, view->facts.pid, view->facts.image);
	rc = write_feed(s->verdict->trace, view_feed(view), view, file, err);
	if (!rc && set->supervisor) {
		snprintf(file, sizeof(file), "%.4000s/run.whyoom", path);
		rc = write_feed(set->supervisor, view_outside(view), NULL, file, err);
	}
	return rc;
}
