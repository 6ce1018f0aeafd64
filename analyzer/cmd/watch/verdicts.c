#include "cmd/watch/verdicts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/watch/job.h"
#include "trace/trace.h"
#include "util/clock_ns.h"
#include "util/num.h"
#include "util/text/note.h"
#include "util/vec.h"
#include "verdict/verdict.h"
#include "watch/early.h"

struct subject {
	char *path;
	uint64_t next_ns; /* not before */
	uint64_t refused; /* requests so far, at its latest verdict */
};

struct verdicts {
	double seconds;
	bool quiet;
	struct job job;
	int result; /* the read end of its pipe */
	char *path; /* of its trace, or of the latest one */
	uint64_t begin_ns, next_ns; /* of the job; of the next one, of any process */
	VEC(struct subject) subjects;
};

/* What the process beside the watcher does. */
struct work {
	const char *path;
	bool early; /* the host's memory is about to run out */
};

struct verdicts *verdicts_new(double seconds, bool quiet)
{
	struct verdicts *v = calloc(1, sizeof(*v));

	if (v) {
		v->seconds = seconds;
		v->quiet = quiet;
		v->result = -1;
	}
	return v;
}

static void forget(struct verdicts *v, size_t at)
{
	free(v->subjects.items[at].path);
	v->subjects.items[at] = v->subjects.items[--v->subjects.count];
}

void verdicts_free(struct verdicts *v)
{
	if (!v)
		return;
	job_kill(&v->job);
	if (v->result >= 0)
		close(v->result);
	while (v->subjects.count)
		forget(v, v->subjects.count - 1);
	vec_free(&v->subjects);
	free(v->path);
	free(v);
}

static struct subject *find(struct verdicts *v, const char *path)
{
	for (size_t i = 0; i < v->subjects.count; i++)
		if (!strcmp(v->subjects.items[i].path, path))
			return &v->subjects.items[i];
	return NULL;
}

void verdicts_end(struct verdicts *v, const char *path)
{
	struct subject *s = find(v, path);

	if (s)
		forget(v, (size_t)(s - v->subjects.items));
}

static void take_cause(const struct verdict_result *r, struct watched_cause *out)
{
	const struct verdict *v = &r->verdict;

	*out = (struct watched_cause){.known = true,
	    .cause = v->cause,
	    .confidence = v->confidence,
	    .line = v->blame.line,
	    .bytes = v->blame.bytes};
	str_fit(v->blame.function, out->function, sizeof(out->function));
	str_fit(v->blame.file, out->file, sizeof(out->file));
}

/* Judge a process whose host memory is about to run out. 1: no limit is known, and *out is
 * unchanged. */
static int judge_early(const struct trace_set *set, struct watched_cause *out, struct err *err)
{
	struct early *early = calloc(1, sizeof(*early));
	int r;

	if (!early)
		return err_set(err, -ENOMEM, "no memory for the verdict");
	r = early_judge(feed_of_trace(set->images[0]), UINT64_MAX, early, err);
	if (!r && early->cause == CAUSE_UNKNOWN)
		*out = (struct watched_cause){.known = true, .cause = CAUSE_UNKNOWN};
	else if (!r) {
		take_cause(&early->as_if, out);
		out->confidence = early->confidence;
	}
	if (!r)
		early_fini(early);
	free(early);
	return r;
}

/* Where the host's memory grows to its limit, there is no failure to explain yet, so the verdict is
 * on the one that is near. Else the process is judged as it is. */
static int judge(const struct work *w, struct watched_cause *out, struct err *err)
{
	struct verdict_result result;
	struct trace_set set;
	int r = trace_set_open(w->path, &set, err);

	if (r)
		return r;
	r = w->early ? judge_early(&set, out, err) : 1;
	if (r == 1) {
		r = verdict_of_set(&set, NULL, &result, err);
		if (!r) {
			take_cause(&result, out);
			verdict_fini(&result);
		}
	}
	trace_set_close(&set);
	return r;
}

/* Write the report that `whyoom report` makes. Returns its exit status. */
static int write_report(const char *trace, const char *format)
{
	char report[] = "report", option[] = "--format", output[] = "--output";
	char name[16], path[PATH_MAX], file[PATH_MAX];
	char *argv[] = {report, option, name, output, path, file, NULL};
	const char *dot = strrchr(trace, '.');
	size_t bytes = dot && !strchr(dot, '/') ? (size_t)(dot - trace) : strlen(trace);

	snprintf(name, sizeof(name), "%s", format);
	snprintf(file, sizeof(file), "%s", trace);
	if (snprintf(path, sizeof(path), "%.*s.report.%s", (int)bytes, trace, format) >=
	    (int)sizeof(path))
		return CMD_ERROR;
	return cmd_report.main(6, argv);
}

static int work(void *arg, int result)
{
	const struct work *w = arg;
	struct watched_cause cause;
	struct err err;
	int r = judge(w, &cause, &err);

	if (r)
		return cmd_error(&err);
	if (write(result, &cause, sizeof(cause)) != sizeof(cause))
		return CMD_ERROR;
	r = write_report(w->path, "json");
	return r ? r : write_report(w->path, "html");
}

static bool at_risk(const struct watched *w, const struct subject *s)
{
	for (size_t i = 0; i < w->space_count; i++)
		if (w->spaces[i].forecast.alarm)
			return true;
	return w->refused > s->refused;
}

static int begin(struct verdicts *v, struct subject *s, const struct watched *w)
{
	struct work what = {.path = s->path, .early = w->spaces[0].forecast.alarm};
	char *path = strdup(s->path);

	if (!path)
		return -ENOMEM;
	free(v->path);
	v->path = path;
	v->begin_ns = clock_ns(CLOCK_MONOTONIC);
	s->next_ns = num_sum(v->begin_ns, num_ns(v->seconds));
	s->refused = w->refused;
	/* If too much is open now, the next time may do. */
	return job_start_work(&v->job, work, &what, &v->result, v->quiet, VERDICT_SECONDS) ==
		       -ENOMEM
		   ? -ENOMEM
		   : 0;
}

int verdicts_see(struct verdicts *v, const struct watched *w, const char *path)
{
	struct subject *s = find(v, path);
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!w->running) {
		verdicts_end(v, path);
		return 0;
	}
	if (!s) {
		char *copy = strdup(path);

		if (!copy || vec_push(&v->subjects, (struct subject){.path = copy})) {
			free(copy);
			return -ENOMEM;
		}
		s = &v->subjects.items[v->subjects.count - 1];
	}
	if (v->job.pid || now < v->next_ns || now < s->next_ns || !at_risk(w, s))
		return 0;
	return begin(v, s, w);
}

bool verdicts_made(struct verdicts *v, const char **path, struct watched_cause *out)
{
	struct watched_cause cause;
	struct job_end end;
	bool whole;

	if (!job_ended(&v->job, &end))
		return false;
	v->next_ns = num_sum(v->begin_ns, num_ns(end.cpu_seconds / VERDICT_SHARE));
	whole = job_take(&v->result, &cause, sizeof(cause));
	if (end.status && !v->quiet)
		note("%s: %s", v->path,
		    end.late ? "the verdict was given up, it took too long"
			     : "its verdict or its report could not be made");
	if (!whole)
		return false;
	*path = v->path;
	*out = cause;
	return true;
}

bool verdicts_busy(const struct verdicts *v)
{
	return v->job.pid != 0;
}
