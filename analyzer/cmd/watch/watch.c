/*
 * watch.c - `whyoom watch`: what running processes hold, what grows in them, and when it will be
 * full, as their traces say while they are written. Reads the traces only.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "cmd/watch/alert.h"
#include "cmd/watch/failures.h"
#include "cmd/watch/target.h"
#include "cmd/watch/verdicts.h"
#include "knowledge/knowledge.h"
#include "trace/trace.h"
#include "util/clock_ns.h"
#include "util/num.h"
#include "util/progress.h"
#include "util/text/note.h"
#include "util/vec.h"
#include "watch/engine/engine_words.h"
#include "watch/http.h"
#include "watch/metrics.h"
#include "watch/pages.h"
#include "watch/push.h"
#include "watch/screen.h"
#include "watch/view/view.h"

enum {
	OPT_ONCE = 256,
	OPT_INTERVAL,
	OPT_WARM_UP,
	OPT_TEXTFILE,
	OPT_LABEL,
	OPT_METRICS,
	OPT_ENGINE,
	OPT_CGROUP,
	OPT_ON_ALERT,
	OPT_VERDICT_EVERY,
	OPT_VERDICT_AT_END,
	OPT_PUSH
};

#define LABELS_MAX 16u
#define WIDTH_USUAL 100u
#define JOB_WAIT_NS 200000000u /* how long the end of a command may pass unnoticed */
#define WAIT_MOST_NS 3600000000000u /* at once: any number of seconds is a valid interval */

static const struct option options[] = {
    {"once", no_argument, NULL, OPT_ONCE},
    {"interval", required_argument, NULL, OPT_INTERVAL},
    {"warm-up", required_argument, NULL, OPT_WARM_UP},
    {"textfile", required_argument, NULL, OPT_TEXTFILE},
    {"label", required_argument, NULL, OPT_LABEL},
    {"metrics", required_argument, NULL, OPT_METRICS},
    {"engine", required_argument, NULL, OPT_ENGINE},
    {"cgroup", required_argument, NULL, OPT_CGROUP},
    {"on-alert", required_argument, NULL, OPT_ON_ALERT},
    {"verdict-every", required_argument, NULL, OPT_VERDICT_EVERY},
    {"verdict-at-end", no_argument, NULL, OPT_VERDICT_AT_END},
    {"push", required_argument, NULL, OPT_PUSH},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
	bool once;
	double interval, warm_up; /* seconds */
	const char *textfile; /* NULL: none */
	const char *metrics; /* address; NULL: no server */
	const char *on_alert; /* command; NULL: none */
	double verdict_every; /* seconds; 0: no verdicts */
	bool verdict_at_end;
	const char *push; /* URL; NULL: none */
	const char *cgroup; /* directory of all processes' cgroup; NULL: look for each one's */
	struct metrics_label labels[LABELS_MAX];
	size_t label_count;
	const char *engines[ENGINES_MAX]; /* URLs */
	size_t engine_count;
	const char *directory; /* NULL: `path` alone */
	char path[PATH_MAX];
};

/* The processes that are watched, and files that need no further look: they have ended, or cannot
 * be read. */
struct watcher {
	const struct request *request;
	VEC(struct watch *) watches;
	VEC(const struct watched *) states; /* of each, at the latest look */
	VEC(char *) cgroups; /* of each, a directory; NULL: not known */
	VEC(char *) done; /* paths */
	struct knowledge *knowledge; /* of frameworks' functions */
	struct http *http; /* NULL: no server */
	struct engines *engines; /* NULL: none */
	struct pages pages;
	struct metrics_own own;
	struct view *view; /* NULL: text */
	struct alerts *alerts; /* NULL: no command */
	struct verdicts *verdicts; /* NULL: none are made */
	struct failures *failures; /* NULL: what ends is not judged */
};

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
	stopped = signal;
}

static int take_seconds(const char *option, double *out)
{
	char *end;

	*out = strtod(optarg, &end);
	return end == optarg || *end || !(*out >= 0) || isinf(*out)
		   ? cmd_usage(&cmd_watch, "%s is a number of seconds, not '%s'", option, optarg)
		   : 0;
}

static int take_label(struct request *r, char *text)
{
	char *equals = strchr(text, '=');

	if (!equals)
		return cmd_usage(&cmd_watch, "--label is KEY=VALUE, not '%s'", text);
	*equals = '\0';
	if (!metrics_label_valid(text))
		return cmd_usage(&cmd_watch,
		    "--label: '%s' is no name of a label, or the metrics have one of that name",
		    text);
	if (r->label_count == LABELS_MAX)
		return cmd_usage(&cmd_watch, "--label: at most %u", LABELS_MAX);
	r->labels[r->label_count++] = (struct metrics_label){text, equals + 1};
	return 0;
}

static int take_option(struct request *r, int opt, char *const *argv)
{
	int rc;

	switch (opt) {
	case OPT_ONCE:
		r->once = true;
		return 0;
	case OPT_INTERVAL:
		rc = take_seconds("--interval", &r->interval);
		if (!rc && r->interval < 0.1)
			rc = cmd_usage(&cmd_watch, "--interval is 0.1 seconds at least");
		return rc;
	case OPT_WARM_UP:
		return take_seconds("--warm-up", &r->warm_up);
	case OPT_TEXTFILE:
		r->textfile = optarg;
		return 0;
	case OPT_METRICS:
		r->metrics = optarg;
		return 0;
	case OPT_ENGINE:
		if (r->engine_count == ENGINES_MAX)
			return cmd_usage(&cmd_watch, "--engine: at most %u", ENGINES_MAX);
		r->engines[r->engine_count++] = optarg;
		return 0;
	case OPT_ON_ALERT:
		r->on_alert = optarg;
		return 0;
	case OPT_VERDICT_EVERY:
		rc = take_seconds("--verdict-every", &r->verdict_every);
		if (!rc && r->verdict_every < 1)
			rc = cmd_usage(&cmd_watch, "--verdict-every is 1 second at least");
		return rc;
	case OPT_VERDICT_AT_END:
		r->verdict_at_end = true;
		return 0;
	case OPT_PUSH:
		r->push = optarg;
		return 0;
	case OPT_CGROUP:
		r->cgroup = optarg;
		return 0;
	case OPT_LABEL:
		return take_label(r, optarg);
	case 'h':
		cmd_help(&cmd_watch, stdout);
		return -1;
	default:
		return cmd_stray(&cmd_watch, opt, argv[optind - 1]);
	}
}

static int parse(int argc, char **argv, struct request *r, struct err *err)
{
	struct stat st;
	int opt, rc = 0;

	*r = (struct request){.interval = 2, .warm_up = 60};
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, ":h", options, NULL)) != -1)
		rc = take_option(r, opt, argv);
	if (rc)
		return rc;
	if (r->once && r->metrics)
		return cmd_usage(&cmd_watch, "--metrics serves until it is ended: no --once");
	if (r->once && (r->on_alert || r->verdict_every > 0 || r->verdict_at_end || r->push))
		return cmd_usage(&cmd_watch,
		    "--on-alert, --verdict-every, --verdict-at-end and --push need several looks: "
		    "no --once");
	if (optind + 1 != argc)
		return cmd_usage(&cmd_watch, "one directory, trace or process is expected");
	if (!stat(argv[optind], &st)) {
		if (S_ISDIR(st.st_mode))
			r->directory = argv[optind];
		else
			snprintf(r->path, sizeof(r->path), "%s", argv[optind]);
		/* A longer path would have failed above. */
		return r->directory || !(r->verdict_at_end || r->push)
			   ? 0
			   : cmd_usage(&cmd_watch,
				 "--verdict-at-end and --push need a directory, not one trace");
	}
	if (argv[optind][strspn(argv[optind], "0123456789")]) {
		err_set(err, -errno, "%s: %s", argv[optind], strerror(errno));
		return cmd_error(err);
	}
	return traces_of_process(argv[optind], r->path, err) ? cmd_error(err) : 0;
}

static bool is_listed(const struct watcher *w, const char *path)
{
	for (size_t i = 0; i < w->watches.count; i++)
		if (!strcmp(watch_path(w->watches.items[i]), path))
			return true;
	for (size_t i = 0; i < w->done.count; i++)
		if (!strcmp(w->done.items[i], path))
			return true;
	return false;
}

static int set_aside(struct watcher *w, const char *path)
{
	char *copy = strdup(path);

	return copy && !vec_push(&w->done, copy) ? 0 : (free(copy), -ENOMEM);
}

static char *cgroup_of(const struct watcher *w, const struct watched *state, const char *path)
{
	if (w->request->cgroup)
		return strdup(w->request->cgroup);
	return state->running ? target_cgroup("", state->pid, path) : NULL;
}

static void see_pressure(struct watcher *w, size_t at)
{
	const char *directory = w->cgroups.items[at];
	struct pressure p = {0};

	if (directory && w->states.items[at]->running)
		pressure_read(directory, &p);
	watch_set_pressure(w->watches.items[at], &p);
}

/* Note that a process is over. One that ended well and was refused nothing did not fail. */
static void note_end(struct watcher *w, const struct watched *state)
{
	if (w->failures && !state->running && !(state->ended_well && !state->refused))
		failures_note(w->failures);
}

/* Begin to watch a file, unless it is known. A process that had already ended is passed over. */
static int take_file(struct watcher *w, const char *path, struct err *err)
{
	const struct watched *state = NULL;
	struct watch *watch = NULL;
	int rc;

	if (is_listed(w, path))
		return 0;
	rc = watch_open(path, num_ns(w->request->warm_up), w->knowledge, &watch, err);
	if (rc == -ENODATA || rc == -ENOENT)
		return 0; /* it has only just begun, or is gone */
	if (!rc)
		rc = watch_look(watch, &state, err);
	if (rc && !w->request->directory)
		return rc;
	if (rc)
		note("left out: %s", err->text);
	if (rc || (!state->running && w->request->directory)) {
		if (!rc)
			note_end(w, state);
		watch_close(watch);
		return set_aside(w, path);
	}
	rc = vec_push(&w->watches, watch);
	if (!rc)
		rc = vec_push(&w->states, state);
	if (!rc)
		rc = vec_push(&w->cgroups, cgroup_of(w, state, path));
	if (!rc)
		see_pressure(w, w->watches.count - 1);
	return rc;
}

static bool is_trace(const char *name)
{
	size_t n = strlen(name), m = strlen(".whyoom");

	return n > m && name[0] != '.' && !strcmp(name + n - m, ".whyoom") &&
	       strcmp(name, "run.whyoom") != 0;
}

static int list(struct watcher *w, const char *directory, bool top, struct err *err)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[PATH_MAX];
	int rc = 0;

	if (!dir)
		return top ? err_set(err, -errno, "%s: %s", directory, strerror(errno)) : 0;
	while (!rc && (entry = readdir(dir))) {
		if (snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) >=
		    (int)sizeof(path))
			continue;
		if (is_trace(entry->d_name))
			rc = take_file(w, path, err);
		else if (top && trace_is_user_directory(entry->d_name))
			rc = list(w, path, false, err);
	}
	closedir(dir);
	return rc;
}

/* Look at all once more. Processes that have ended are shown a last time, and then dropped. */
static int look(struct watcher *w, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < w->watches.count;) {
		struct watch *watch = w->watches.items[i];
		bool ended = !w->states.items[i]->running;

		if (!ended)
			ended = watch_look(watch, &w->states.items[i], err) < 0;
		if (!ended) {
			note_end(w, w->states.items[i]);
			see_pressure(w, i++);
			continue;
		}
		rc = set_aside(w, watch_path(watch));
		if (w->alerts)
			alerts_end(w->alerts, watch_path(watch));
		if (w->verdicts)
			verdicts_end(w->verdicts, watch_path(watch));
		watch_close(watch);
		free(w->cgroups.items[i]);
		w->cgroups.items[i] = w->cgroups.items[--w->cgroups.count];
		w->watches.items[i] = w->watches.items[--w->watches.count];
		w->states.items[i] = w->states.items[--w->states.count];
		if (rc)
			return rc;
	}
	return w->request->directory ? list(w, w->request->directory, true, err) : 0;
}

static unsigned width(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col
		   ? size.ws_col
		   : WIDTH_USUAL;
}

static uint64_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Let the HTTP server answer with the numbers of the latest look. */
static void update_pages(struct watcher *w)
{
	w->own = (struct metrics_own){(double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9,
	    w->own.looks + 1, w->http ? http_answers(w->http) : 0, resident_bytes(),
	    w->failures ? failures_counts(w->failures) : NULL};
	w->pages = (struct pages){(struct watch *const *)w->watches.items,
	    (const struct watched *const *)w->states.items, w->states.count, w->request->labels,
	    w->request->label_count, &w->own, w->engines};
}

/* Take a verdict that was made, and start what is due. */
static int serve_jobs(struct watcher *w)
{
	struct watched_cause cause;
	const char *path;

	if (w->verdicts && verdicts_made(w->verdicts, &path, &cause))
		for (size_t i = 0; i < w->watches.count; i++)
			if (!strcmp(watch_path(w->watches.items[i]), path))
				watch_set_cause(w->watches.items[i], &cause);
	if (w->failures && failures_serve(w->failures))
		return -ENOMEM;
	return w->alerts ? alerts_serve(w->alerts) : 0;
}

/* Note how each process is at this look. */
static int see_states(struct watcher *w)
{
	int rc = 0;

	for (size_t i = 0; i < w->watches.count && !rc; i++) {
		const struct watched *state = w->states.items[i];
		const char *path = watch_path(w->watches.items[i]);

		if (w->alerts)
			rc = alerts_see(w->alerts, state, path);
		if (w->verdicts && !rc)
			rc = verdicts_see(w->verdicts, state, path);
	}
	return rc ? rc : serve_jobs(w);
}

static bool is_busy(const struct watcher *w)
{
	return (w->alerts && alerts_busy(w->alerts)) ||
	       (w->verdicts && verdicts_busy(w->verdicts)) ||
	       (w->failures && failures_busy(w->failures));
}

static int print(const struct watcher *w, struct err *err)
{
	const struct watched *const *states = (const struct watched *const *)w->states.items;
	struct str text = {0};
	int rc;

	if (w->request->once || isatty(STDOUT_FILENO))
		screen_write(states, w->states.count, width(), &text);
	else
		screen_line(states, w->states.count, &text);
	if (w->engines && (w->request->once || isatty(STDOUT_FILENO)))
		str_putc(&text, '\n');
	engine_lines(w->engines, &text);
	rc = output_write(&text, NULL, err);
	if (fflush(stdout))
		stopped = 1; /* main.c says why */
	str_free(&text);
	return rc;
}

static int show(const struct watcher *w, struct err *err)
{
	const struct watched *const *states = (const struct watched *const *)w->states.items;
	const struct request *r = w->request;
	struct str page = {0};
	int rc = 0;

	if (r->textfile) {
		size_t count;
		const struct engine *engines = engines_list(w->engines, &count);

		metrics_write(states, w->states.count, r->labels, r->label_count, &page);
		engine_metrics(engines, count, r->labels, r->label_count, &page);
		metrics_write_own(&w->own, &page);
		rc = output_write(&page, r->textfile, err);
		str_free(&page);
	}
	if (rc || (r->once && r->textfile))
		return rc;
	if (w->view && w->engines) {
		struct str lines = {0};

		engine_lines(w->engines, &lines);
		view_set_lines(w->view, str_text(&lines));
		str_free(&lines);
	}
	return w->view ? view_show(w->view, w->watches.items, states, w->states.count)
		       : print(w, err);
}

/* Serve what wants an answer before the next look: keys, and requests over HTTP. Signals arrive
 * only while it waits, so none is missed. 0, or a negative errno. */
static int wait_once(struct watcher *w, uint64_t ns, const sigset_t *signals)
{
	struct pollfd asked[] = {
	    {w->view ? STDIN_FILENO : -1, POLLIN, 0}, {w->http ? http_fd(w->http) : -1, POLLIN, 0}};
	struct timespec left;
	int rc;

	if (w->http)
		ns = num_least(ns, http_wait_ms(w->http) * 1000000u);
	if (engines_wait_ms(w->engines) != UINT_MAX)
		ns = num_least(ns, engines_wait_ms(w->engines) * 1000000u);
	if (is_busy(w))
		ns = num_least(ns, JOB_WAIT_NS);
	left = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	if (ppoll(asked, 2, &left, signals) < 0 && errno != EINTR)
		return -errno;
	if (!stopped && w->http)
		http_serve(w->http);
	engines_serve(w->engines);
	if (!stopped && (rc = serve_jobs(w)))
		return rc;
	if (stopped || !w->view)
		return 0;
	if (asked[0].revents & (POLLERR | POLLHUP | POLLNVAL))
		stopped = 1; /* the terminal is gone */
	rc = view_serve(w->view);
	stopped = stopped || rc == 1;
	return rc < 0 ? rc : 0;
}

/* Wait for the time of the next look, or until it shall stop. */
static int wait_for_next(struct watcher *w, double seconds)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};
	uint64_t until = num_sum(clock_ns(CLOCK_MONOTONIC), num_ns(seconds)), now;
	sigset_t held, before;
	int rc = 0;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaddset(&held, signals[i]);
	sigprocmask(SIG_BLOCK, &held, &before);
	while (!rc && !stopped && (now = clock_ns(CLOCK_MONOTONIC)) < until)
		rc = wait_once(w, num_least(until - now, WAIT_MOST_NS), &before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int serve(struct watcher *w, struct err *err)
{
	int rc = http_open(w->request->metrics, pages_answer, &w->pages, &w->http, err);

	if (!rc)
		note("serving http://%s/metrics", http_address(w->http));
	return rc;
}

/* Look and show, again and again. */
static int follow(struct watcher *w, struct err *err)
{
	const struct request *r = w->request;
	int rc = 0;

	while (!rc && !stopped) {
		bool ended = !r->directory && !w->states.items[0]->running;

		engines_ask(w->engines);
		if (r->once)
			engines_wait(w->engines);
		rc = see_states(w);
		if (rc)
			break;
		update_pages(w);
		rc = show(w, err);
		if (rc || r->once || (ended && !w->view))
			break;
		rc = wait_for_next(w, ended ? INFINITY : r->interval);
		if (!rc && !stopped)
			rc = look(w, err);
		if (!r->directory && !w->watches.count)
			break;
	}
	return rc;
}

/* Their words would disturb the view. */
static int begin_jobs(struct watcher *w)
{
	const struct request *r = w->request;

	if (r->on_alert && !(w->alerts = alerts_new(r->on_alert, w->view != NULL)))
		return -ENOMEM;
	if (w->failures && w->view)
		failures_silence(w->failures);
	if (r->verdict_every > 0 &&
	    !(w->verdicts = verdicts_new(r->verdict_every, w->view != NULL)))
		return -ENOMEM;
	return 0;
}

/* Before the first look, which may find processes that have ended already. */
static int begin_failures(struct watcher *w, struct err *err)
{
	const struct request *r = w->request;
	int rc = r->push ? push_check(r->push, err) : 0;

	if (rc || !(r->push || r->verdict_at_end))
		return rc;
	w->failures = failures_new(r->directory, r->push);
	return w->failures ? 0 : -ENOMEM;
}

/* A pod's end may follow that of its server at once: what is not told now never is. */
static void finish_failures(struct watcher *w)
{
	struct err err;

	stopped = 0; /* the next signal counts */
	if (!look(w, &err))
		failures_finish(w->failures, &stopped);
}

static int watch_all(const struct request *r, struct err *err)
{
	struct watcher w = {.request = r, .knowledge = knowledge_open()};
	int rc = !w.knowledge ? err_set(err, -ENOMEM, "out of memory") : begin_failures(&w, err);

	if (!rc)
		rc = r->directory ? list(&w, r->directory, true, err) : take_file(&w, r->path, err);

	if (!rc && !w.watches.count && r->once)
		rc = err_set(err, -ENOENT, "%s: no recorded process is running",
		    r->directory ? r->directory : r->path);
	if (!rc && r->engine_count)
		rc = engines_open(r->engines, r->engine_count, &w.engines, err);
	if (!rc && r->metrics)
		rc = serve(&w, err);
	if (!rc && !r->once) {
		rc = view_open(r->directory ? r->directory : r->path, &w.view);
		rc = rc == 1 ? 0 : rc; /* text will do */
	}
	if (!rc)
		rc = begin_jobs(&w);
	if (!rc)
		rc = follow(&w, err);
	view_close(w.view);
	if (!rc && w.alerts)
		alerts_finish(w.alerts, &stopped); /* the end of the last process, too */
	if (!rc && w.failures && stopped == SIGTERM)
		finish_failures(&w);
	alerts_free(w.alerts);
	verdicts_free(w.verdicts);
	failures_free(w.failures);
	if (r->textfile && !r->once)
		unlink(r->textfile); /* its numbers are of nobody any more */
	http_close(w.http);
	engines_close(w.engines);
	for (size_t i = 0; i < w.watches.count; i++)
		watch_close(w.watches.items[i]);
	for (size_t i = 0; i < w.cgroups.count; i++)
		free(w.cgroups.items[i]);
	for (size_t i = 0; i < w.done.count; i++)
		free(w.done.items[i]);
	knowledge_free(w.knowledge);
	vec_free(&w.watches);
	vec_free(&w.states);
	vec_free(&w.cgroups);
	vec_free(&w.done);
	if (rc == -ENOMEM)
		err_set(err, rc, "out of memory");
	return rc ? cmd_error(err) : CMD_DONE;
}

static int watch_main(int argc, char **argv)
{
	struct request r;
	struct err err;
	int rc = parse(argc, argv, &r, &err);

	if (rc)
		return rc < 0 ? CMD_DONE : rc;
	if (!r.once) {
		struct sigaction action = {.sa_handler = stop}, hang_up;

		progress_unwatch();
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		/* nohup has it ignored. */
		if (!sigaction(SIGHUP, NULL, &hang_up) && hang_up.sa_handler != SIG_IGN)
			sigaction(SIGHUP, &action, NULL);
	}
	return watch_all(&r, &err);
}

const struct command cmd_watch = {
    .name = "watch",
    .arguments = "[OPTION...] DIRECTORY|TRACE|PID",
    .summary = "say what grows in running processes, and when memory will be full",
    .details =
	"Follows the traces of all recorded processes in a directory, of one trace, or of a\n"
	"process, as they are written. On a terminal it is a view with keys (h lists them);\n"
	"else a line at each look.\n"
	"\n"
	"      --once             look once, and end\n"
	"      --interval SECONDS between two looks (default: 2)\n"
	"      --warm-up SECONDS  forecast nothing for a younger process (default: 60)\n"
	"      --textfile FILE    write metrics there, for node_exporter's textfile collector\n"
	"      --metrics [ADDRESS:]PORT  serve metrics and profiles over HTTP there\n"
	"      --engine URL       ask the inference server there how full its KV pool is\n"
	"      --label KEY=VALUE  add a label to each metric of a process\n"
	"      --on-alert COMMAND  run it when a process begins to grow, is at risk, is well\n"
	"                         again, or ends, with WHYOOM_ALERT_* in its environment\n"
	"      --verdict-every SECONDS  put a report on each process at risk beside its trace\n"
	"      --verdict-at-end   put a report beside the trace of what ended for want of memory\n"
	"      --push URL         POST the fleet's line of each such failure there, too\n"
	"      --cgroup DIRECTORY  read the early signs of that cgroup (default: the process's)\n"
	"  -h, --help             this help\n",
    .main = watch_main,
};
