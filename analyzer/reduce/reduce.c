/*
 * reduce.c - repeats rounds of the search until nothing more can be left out. Each round's result
 * is made and checked, and the last one that fails is the answer.
 */
#include "reduce/reduce.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/writer.h"
#include "util/num.h"
#include "util/tuned.h"
#include "util/unfinished.h"

TUNED(unsigned, ROUNDS, 8, "a bound for traces whose rounds gain little each");
TUNED(uint64_t, ROUND_GAIN, 10, "a round that leaves out less than a tenth is not worth its time");

void reduce_remove(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
	unfinished_done(path);
}

struct making {
	const struct trace_set *set;
	const struct reduce_request *request;
	const char *path;
	char good[4096]; /* the last trace that fails like the original, or empty */
	uint32_t made;
	struct reduce_result *out;
};

static uint64_t count_blocks(const struct record *r, const uint8_t *kept)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->events.count; i++) {
		const struct record_event *e = &r->events.items[i];

		if (kept && !kept[e->unit])
			continue;
		n += e->kind == EV_ALLOC || e->kind == EV_MAP || e->kind == EV_SPACE_ALLOC;
	}
	return n;
}

/* Names a path beside the result that no command takes for a trace. */
static void name_hidden(struct making *m, char *path, size_t room)
{
	const char *slash, *name;
	size_t n = strlen(m->path);

	while (n > 1 && m->path[n - 1] == '/')
		n--;
	slash = memrchr(m->path, '/', n);
	name = slash ? slash + 1 : m->path;
	snprintf(path, room, "%.*s.%.*s.%ld.%u", (int)(name - m->path), m->path,
	    (int)(n - (size_t)(name - m->path)), name, (long)getpid(), m->made++);
}

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

/* Writes the kept units as a directory of traces, as `whyoom run` would have written them. 0 or
 * negative with err. */
static int save_traces(const struct search *s, const struct trace_set *set, const char *path,
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

/* 1: it fails, or there is no check. */
static int make(void *arg, const struct search *s, struct err *err)
{
	struct making *m = arg;
	char path[4096];
	struct view view;
	int rc = view_make(s->record, s->kept, &view), fails = 1;

	name_hidden(m, path, sizeof(path));
	if (rc)
		err_set(err, rc, "no memory to write the trace");
	else
		rc = save_traces(s, m->set, path, &view, err);
	if (!rc && m->request->fails) {
		fails = m->request->fails(m->request->arg, path, err);
		m->out->asked = true;
	}
	if (rc || fails <= 0) {
		reduce_remove(path);
	} else {
		if (*m->good)
			reduce_remove(m->good);
		snprintf(m->good, sizeof(m->good), "%s", path);
		m->out->fails = m->out->asked;
		m->out->events_left = view.order.count;
		m->out->blocks_left = count_blocks(s->record, s->kept);
		m->out->confidence_left = s->left.confidence;
		m->out->limit_less = num_less(s->whole.limit, s->left.limit);
	}
	view_fini(&view);
	return rc ? rc : fails;
}

static int search(struct making *m, struct search *s, struct err *err)
{
	uint64_t before;
	uint32_t round = 0;
	int rc;

	s->check = make;
	s->arg = m;
	s->stop = m->request->stop;
	do {
		before = s->events;
		rc = search_round(s, err);
	} while (!rc && ++round < ROUNDS && !search_is_late(s) &&
		 before - s->events > before / ROUND_GAIN);
	/* The signal may have stopped the check, too. */
	if (rc < 0 && s->stop && *s->stop)
		rc = 0;
	m->out->ended = !search_is_late(s);
	return rc;
}

int reduce_set(const struct trace_set *set, const struct verdict_result *verdict,
    const struct reduce_request *request, const char *path, struct reduce_result *out,
    struct err *err)
{
	struct making m = {.set = set, .request = request, .path = path, .out = out};
	struct record record = {0};
	struct search s = {0};
	int rc;

	memset(out, 0, sizeof(*out));
	if (verdict->failure.kind == FAILURE_NONE)
		return err_set(
		    err, -ENODATA, "nothing failed in this trace: there is nothing to reduce");
	if (verdict->volume)
		return err_set(err, -ENOTSUP,
		    "a file system in memory ran full, and a reduced trace writes no files, so it "
		    "could not fail the same way");
	if (verdict->verdict.cause == CAUSE_UNKNOWN)
		return err_set(err, -ENODATA,
		    "the cause is unknown, so it is unknown what a reduced trace must keep");
	rc = record_load(set, verdict, &record, err);
	if (!rc) {
		out->events = record.events.count;
		out->blocks = count_blocks(&record, NULL);
		out->cause = verdict->verdict.cause;
		rc = search_begin(&s, &record, verdict, request->seconds, err);
		out->confidence = s.same.confidence;
	}
	if (!rc)
		rc = search(&m, &s, err);
	out->trials = s.trials;
	/* Nothing can be left out: the original is the smallest. */
	if (!rc && !*m.good) {
		struct reduce_request unasked = {.seconds = request->seconds};

		m.request = &unasked;
		rc = make(&m, &s, err);
	}
	if (rc > 0)
		rc = 0;
	if (!rc && rename(m.good, path))
		rc = err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!rc)
		unfinished_done(m.good);
	else if (*m.good)
		reduce_remove(m.good);
	search_fini(&s);
	record_fini(&record);
	return rc;
}
