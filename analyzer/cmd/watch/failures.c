#include "cmd/watch/failures.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/output.h"
#include "cmd/watch/job.h"
#include "fleet/store.h"
#include "trace/trace.h"
#include "util/clock_ns.h"
#include "util/io.h"
#include "util/num.h"
#include "util/text/note.h"
#include "verdict/verdict.h"
#include "watch/push.h"

#define LINE ".failure.json"
#define PUSHED ".pushed"
/* The longest line that is read: a thousand times the usual one. */
#define LINE_MOST (4u << 20)
/* Many short processes may end badly; then judging takes this part of a core, and a failure waits
 * for its verdict no longer than so many seconds. */
#define SHARE 0.1
#define WAIT_MOST 60.0
#define POLL_MS 50

/* What the process beside the watcher tells. */
struct told {
	bool fresh; /* a failure was judged for the first time: */
	enum cause cause;
	char sentence[256], report[1024];
	uint32_t pushed, pending; /* lines: that the server took now; that wait */
	char problem[256]; /* why a line waits; "": nothing does */
};
_Static_assert(sizeof(struct told) <= PIPE_BUF, "a pipe takes it at once");

struct failures {
	const char *directory, *url;
	bool quiet;
	struct job job;
	int result; /* the read end of its pipe */
	bool ended; /* something did since the job began */
	uint64_t begin_ns, judge_ns, push_ns; /* of the job; when the next may begin */
	double retry; /* seconds until the next try to push */
	char problem[256]; /* that was noted last */
	struct metrics_failures counts;
};

/* --- in the process beside the watcher --- */

struct work {
	const struct failures *f;
	bool judge;
};

/* "DIR/1.0" and ".pushed": a file beside the trace DIR/1.0.whyoom. 0 or -ENAMETOOLONG. */
static int beside(const char *base, const char *ending, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s%s", base, ending) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* A process whose end was not seen may have become a program that is not recorded: a kill counts
 * only with a limit that was met. */
static bool is_failure(const struct verdict_result *r)
{
	if (failure_is_kill(r->failure.kind) && r->failure.limit == LIMIT_NONE)
		return false;
	return r->failure.kind != FAILURE_NONE && r->verdict.cause != CAUSE_HEALTHY &&
	       r->tree.processes[r->tree.subject].how != END_RUNNING;
}

static int line_of(
    const char *directory, const struct fleet_judged *judged, struct str *line, struct err *err)
{
	const struct fleet_run run = {.path = (char *)(uintptr_t)directory};
	struct fleet_store *store;
	int rc = fleet_open(NULL, true, &store, err);

	if (rc)
		return rc;
	rc = fleet_line(store, &run, judged, line, err);
	fleet_close(store);
	return rc;
}

/* Write the report and the line. The line comes last: it says that all is there. */
static int keep(const char *directory, const char *base, const struct verdict_result *r,
    struct told *told, struct err *err)
{
	struct fleet_judged judged = {0};
	struct str line = {0};
	char path[PATH_MAX];
	int rc = fleet_texts(r, &judged);

	if (rc)
		err_set(err, rc, "no memory for the report");
	if (!rc)
		rc = line_of(directory, &judged, &line, err);
	if (!rc && !(rc = beside(base, ".report.json", path))) {
		str_fit(path, told->report, sizeof(told->report));
		rc = output_write(&judged.report, path, err);
	}
	if (!rc && !(rc = beside(base, LINE, path)))
		rc = output_write(&line, path, err);
	if (!rc) {
		told->fresh = true;
		told->cause = r->verdict.cause;
		str_fit(r->verdict.summary, told->sentence, sizeof(told->sentence));
	}
	fleet_judged_free(&judged);
	str_free(&line);
	return rc;
}

/* Judge the directory. base[0] is '\0' if there is no failure, or it is known. */
static int judge(const struct failures *f, char base[PATH_MAX], struct told *told, struct err *err)
{
	struct verdict_result result;
	struct trace_set set;
	char path[PATH_MAX];
	int rc = trace_set_open(f->directory, &set, err);

	base[0] = '\0';
	if (rc)
		return rc;
	rc = verdict_of_set(&set, NULL, &result, err);
	if (!rc) {
		if (is_failure(&result)) {
			const char *trace = trace_facts(result.trace)->path;
			const char *dot = strrchr(trace, '.');

			snprintf(base, PATH_MAX, "%.*s", (int)(dot ? dot - trace : 0), trace);
		}
		if (base[0] && !beside(base, LINE, path) && !access(path, F_OK))
			base[0] = '\0';
		if (base[0])
			rc = keep(f->directory, base, &result, told, err);
		verdict_fini(&result);
	}
	trace_set_close(&set);
	return rc;
}

static void write_page(const char *directory, const char *base)
{
	char report[] = "report", html[] = "--format=html", output[] = "--output", path[PATH_MAX];
	char *argv[] = {report, html, output, path, (char *)(uintptr_t)directory, NULL};

	if (!beside(base, ".report.html", path))
		cmd_report.main(5, argv);
}

static int push_file(const char *url, const char *path, const char *mark, struct err *err)
{
	struct str line = {0};
	int rc = io_read_text(path, LINE_MOST, &line, err), fd;

	if (!rc)
		rc = push_line(url, str_text(&line), line.length, err);
	str_free(&line);
	if (rc)
		return rc;
	fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, -errno, "%s: %s", mark, strerror(errno));
	close(fd);
	return 0;
}

/* Push the lines that no server took yet, until one is not taken: the server may be away. */
static void push_all(const struct failures *f, struct told *told)
{
	DIR *dir = opendir(f->directory);
	char path[PATH_MAX], mark[PATH_MAX];
	struct dirent *entry;
	struct err err;

	while (dir && (entry = readdir(dir))) {
		const char *end = strstr(entry->d_name, LINE);

		if (!end || strcmp(end, LINE) != 0 || entry->d_name[0] == '.' ||
		    snprintf(path, PATH_MAX, "%s/%s", f->directory, entry->d_name) >= PATH_MAX ||
		    snprintf(mark, PATH_MAX, "%s/%.*s" PUSHED, f->directory,
			(int)(end - entry->d_name), entry->d_name) >= PATH_MAX ||
		    !access(mark, F_OK))
			continue;
		if (told->problem[0]) {
			told->pending++;
		} else if (push_file(f->url, path, mark, &err)) {
			told->pending++;
			str_fit(err.text, told->problem, sizeof(told->problem));
		} else {
			told->pushed++;
		}
	}
	if (dir)
		closedir(dir);
}

static int work(void *arg, int result)
{
	const struct work *w = arg;
	struct told told = {0};
	char base[PATH_MAX] = "";
	struct err err;
	int rc = w->judge ? judge(w->f, base, &told, &err) : 0;

	if (w->f->url)
		push_all(w->f, &told);
	if (write(result, &told, sizeof(told)) != sizeof(told))
		return CMD_ERROR;
	if (rc)
		return cmd_error(&err);
	if (base[0])
		write_page(w->f->directory, base);
	return CMD_DONE;
}

/* --- in the watcher --- */

struct failures *failures_new(const char *directory, const char *url)
{
	struct failures *f = calloc(1, sizeof(*f));

	if (f) {
		f->directory = directory;
		f->url = url;
		f->result = -1;
		f->retry = 1;
		f->push_ns = url ? 0 : UINT64_MAX;
	}
	return f;
}

void failures_silence(struct failures *f)
{
	f->quiet = true;
}

void failures_free(struct failures *f)
{
	if (!f)
		return;
	job_kill(&f->job);
	if (f->result >= 0)
		close(f->result);
	free(f);
}

void failures_note(struct failures *f)
{
	f->ended = true;
}

static void take_pushes(struct failures *f, const struct told *told)
{
	f->counts.pushed += told->pushed;
	f->counts.pending = told->pending;
	if (!told->problem[0]) {
		f->problem[0] = '\0';
		f->retry = 1;
		f->push_ns = UINT64_MAX;
		return;
	}
	f->counts.problems++;
	/* A server that is away for hours is one line. */
	if (!f->quiet && strcmp(told->problem, f->problem) != 0)
		note("%s did not take a report: %s; it is tried again", f->url, told->problem);
	memcpy(f->problem, told->problem, sizeof(f->problem));
	f->push_ns = num_sum(clock_ns(CLOCK_MONOTONIC), num_ns(f->retry));
	f->retry = f->retry * 2 < FAILURES_RETRY_MOST ? f->retry * 2 : FAILURES_RETRY_MOST;
}

static void take(struct failures *f, const struct job_end *end)
{
	double wait = end->cpu_seconds / SHARE;
	struct told told;

	f->judge_ns = num_sum(f->begin_ns, num_ns(wait < WAIT_MOST ? wait : WAIT_MOST));
	if (job_take(&f->result, &told, sizeof(told))) {
		if (told.fresh) {
			f->counts.by_cause[told.cause]++;
			if (!f->quiet)
				note("%s: %s; %s", cause_name(told.cause), told.sentence,
				    told.report);
		}
		if (f->url)
			take_pushes(f, &told);
	}
	if (end->status && !f->quiet)
		note("%s: %s", f->directory,
		    end->late ? "judging what ended was given up, it took too long"
			      : "what ended could not be judged");
}

static bool is_due(const struct failures *f, uint64_t now)
{
	return (f->ended && now >= f->judge_ns) || now >= f->push_ns;
}

int failures_serve(struct failures *f)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct job_end end;
	struct work what;
	int rc;

	if (job_ended(&f->job, &end))
		take(f, &end);
	if (f->job.pid || !is_due(f, now))
		return 0;
	what = (struct work){f, f->ended && now >= f->judge_ns};
	rc = job_start_work(&f->job, work, &what, &f->result, f->quiet, FAILURES_SECONDS);
	if (rc) /* it stays due */
		return rc == -ENOMEM ? rc : 0;
	f->begin_ns = now;
	f->ended = f->ended && !what.judge;
	f->push_ns = UINT64_MAX;
	return 0;
}

bool failures_busy(const struct failures *f)
{
	return f->job.pid || f->ended || f->push_ns != UINT64_MAX;
}

void failures_finish(struct failures *f, const volatile sig_atomic_t *stopped)
{
	uint64_t until = num_sum(clock_ns(CLOCK_MONOTONIC), num_ns(FAILURES_LAST));

	f->judge_ns = 0;
	while (!*stopped && failures_busy(f) && clock_ns(CLOCK_MONOTONIC) < until) {
		if (failures_serve(f))
			return;
		poll(NULL, 0, POLL_MS);
	}
}

const struct metrics_failures *failures_counts(const struct failures *f)
{
	return &f->counts;
}
