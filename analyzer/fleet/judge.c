/*
 * judge.c - judges runs side by side: see runs.h. Each is judged in a child, which writes the
 * report, a NUL, the call sites and a NUL to a pipe; or an error as its exit status says.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fleet/runs.h"
#include "report/format.h"
#include "trace/trace.h"
#include "util/num.h"
#include "util/progress.h"
#include "util/unfinished.h"
#include "verdict/verdict.h"

#define JOBS_MAX 64u
#define SITES 20u /* what `whyoom sites` lists by default */
/* Of a report; a thousand processes take some 400 KiB. */
#define BYTES_MAX (64u << 20)

void fleet_judged_free(struct fleet_judged *judged)
{
	str_free(&judged->report);
	str_free(&judged->sites);
	str_free(&judged->error);
}

/* --- in the child --- */

static void write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(2);
		text += n;
		bytes -= (size_t)n;
	}
}

int fleet_texts(const struct verdict_result *result, struct fleet_judged *out)
{
	const struct report_style style = {.columns = 80};
	struct report_view report = {.result = result};
	struct sites_view sites = {.model = result->model,
	    .callsites = result->callsites,
	    .at = result->ledger.at,
	    .limit = SITES};

	format_json.report(&report, &style, &out->report);
	if (result->callsites)
		format_json.sites(&sites, &style, &out->sites);
	else
		str_puts(&out->sites, "{}");
	return out->report.failed || out->sites.failed ? -ENOMEM : 0;
}

static int write_report(int fd, const struct verdict_result *result)
{
	struct fleet_judged judged = {0};
	int rc = fleet_texts(result, &judged);

	if (!rc) {
		write_all(fd, str_text(&judged.report), judged.report.length + 1);
		write_all(fd, str_text(&judged.sites), judged.sites.length + 1);
	}
	fleet_judged_free(&judged);
	return rc;
}

static _Noreturn void judge_run(const char *path, int fd)
{
	struct verdict_result result;
	struct trace_set set;
	struct err err;
	int rc = trace_set_open(path, &set, &err);

	if (!rc)
		rc = verdict_of_set(&set, NULL, &result, &err);
	if (!rc && write_report(fd, &result))
		rc = err_set(&err, -ENOMEM, "no memory for the report");
	if (rc)
		write_all(fd, err.text, strlen(err.text));
	_exit(rc ? 1 : 0); /* what the child inherited is the parent's to finish */
}

/* --- in the parent --- */

struct job {
	pid_t pid; /* 0: none */
	int fd;
	const struct fleet_run *run;
	struct str text;
	uint64_t until_ns;
	bool late;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int start(struct job *job, const struct fleet_run *run, unsigned seconds, struct err *err)
{
	int fds[2], null;

	if (pipe2(fds, O_CLOEXEC))
		return err_set(err, -errno, "no pipe: %s", strerror(errno));
	fflush(NULL);
	*job = (struct job){
	    .fd = fds[0], .run = run, .until_ns = now_ns() + (uint64_t)seconds * 1000000000u};
	job->pid = fork();
	if (job->pid < 0) {
		job->pid = 0;
		close(fds[0]);
		close(fds[1]);
		return err_set(err, -errno, "no process: %s", strerror(errno));
	}
	if (!job->pid) {
		for (int s = 1; s < 32; s++)
			signal(s, SIG_DFL);
		/* Notes on damage are in the report. */
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		if (null >= 0)
			dup2(null, STDERR_FILENO);
		judge_run(run->path, fds[1]);
	}
	close(fds[1]);
	unfinished_child(job->pid);
	return 0;
}

/* Read what is there. Returns whether more may come. */
static bool read_some(struct job *job)
{
	char part[65536];
	ssize_t n = read(job->fd, part, sizeof(part));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	str_add(&job->text, part, (size_t)n);
	return n && !job->text.failed && job->text.length < BYTES_MAX;
}

static void fill(const struct job *job, int status, unsigned seconds, struct fleet_judged *out)
{
	const char *text = str_text(&job->text), *end = text + job->text.length;
	const char *sites = memchr(text, 0, job->text.length);

	if (job->late)
		str_printf(&out->error, "gave up after %u s (--timeout)", seconds);
	else if (WIFSIGNALED(status))
		str_printf(&out->error, "judging it ended by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) == 1)
		str_valid(&out->error, text);
	else if (WEXITSTATUS(status) || !sites || sites + 1 >= end)
		str_puts(&out->error, "its report was cut off");
	else {
		str_puts(&out->report, text);
		str_puts(&out->sites, sites + 1);
	}
}

static int finish(struct job *job, const struct fleet_judging *how, struct err *err)
{
	struct fleet_judged judged = {0};
	int status = 0, rc;

	/* What it cannot hand over it need not finish. */
	if (job->late || job->text.failed || job->text.length >= BYTES_MAX)
		kill(job->pid, SIGKILL);
	while (waitpid(job->pid, &status, 0) < 0 && errno == EINTR)
		;
	unfinished_child_done(job->pid);
	close(job->fd);
	fill(job, status, how->seconds, &judged);
	rc = how->take(how->self, job->run, &judged, err);
	fleet_judged_free(&judged);
	str_free(&job->text);
	job->pid = 0;
	return rc;
}

/* Wait until a job is over. Returns its index, or -1: none yet. */
static int wait_for(struct job *jobs, unsigned count)
{
	struct pollfd fds[JOBS_MAX];
	uint64_t now = now_ns(), first = UINT64_MAX;

	for (unsigned i = 0; i < count; i++) {
		fds[i] = (struct pollfd){.fd = jobs[i].pid ? jobs[i].fd : -1, .events = POLLIN};
		if (jobs[i].pid)
			first = num_least(first, jobs[i].until_ns);
	}
	poll(fds, count, first > now ? (int)num_least((first - now) / 1000000u + 1, 1000u) : 0);
	now = now_ns();
	for (unsigned i = 0; i < count; i++) {
		if (!jobs[i].pid)
			continue;
		if (fds[i].revents && !read_some(&jobs[i]))
			return (int)i;
		jobs[i].late = now >= jobs[i].until_ns;
		if (jobs[i].late)
			return (int)i;
	}
	return -1;
}

int fleet_judge(const struct fleet_runs *runs, const size_t *which, size_t count,
    const struct fleet_judging *how, struct err *err)
{
	struct job jobs[JOBS_MAX] = {0};
	unsigned most = how->jobs < JOBS_MAX ? how->jobs : JOBS_MAX, busy = 0;
	size_t next = 0, done = 0;
	int rc = 0, over;

	progress_begin("judging", count);
	while (!rc && done < count) {
		for (unsigned i = 0; i < most && next < count && !rc; i++) {
			if (jobs[i].pid)
				continue;
			rc = start(&jobs[i], &runs->list.items[which[next]], how->seconds, err);
			next += !rc;
			busy += !rc;
		}
		over = busy && !rc ? wait_for(jobs, most) : -1;
		if (over < 0)
			continue;
		busy--;
		rc = finish(&jobs[over], how, err);
		progress_step(++done);
	}
	for (unsigned i = 0; i < most; i++)
		if (jobs[i].pid) {
			kill(jobs[i].pid, SIGKILL);
			waitpid(jobs[i].pid, NULL, 0);
			unfinished_child_done(jobs[i].pid);
			close(jobs[i].fd);
			str_free(&jobs[i].text);
		}
	progress_end();
	return rc;
}
