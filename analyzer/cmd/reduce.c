/*
 * reduce.c - `whyoom reduce`: the smallest trace that still fails for the same cause.
 */
#include "reduce/reduce.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "cmd/replay_parts.h"
#include "reduce/steps.h"
#include "replay/replay.h"
#include "util/text/note.h"
#include "util/unfinished.h"
#include "verdict/verdict.h"

enum { OPT_TIME = 256, OPT_EMIT };

static const struct option options[] = {
    {"time", required_argument, NULL, OPT_TIME},
    {"emit", required_argument, NULL, OPT_EMIT},
    OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

/* Long enough for most traces to shrink to tens of events, short enough to wait for. */
#define SECONDS 120

static volatile sig_atomic_t stopped;

/* The first signal ends the search and keeps the result so far; the second ends the command. */
static void stop(int signal)
{
	stopped = 1;
	unfinished_watch_signal(signal);
}

struct request {
	uint64_t seconds;
	struct output output; /* -o names the small trace, and the result's text goes to stdout */
	const char *trace; /* NULL: only the program is wanted */
	const char *program; /* NULL: to stdout */
	char beside[PATH_MAX]; /* the program's name, if it is made from the trace's */
	bool emit;
};

/* The program of small.whyoom is small.c. */
static void name_program(struct request *r)
{
	size_t n = r->trace ? strlen(r->trace) : 0;

	while (n > 1 && r->trace[n - 1] == '/')
		n--;
	if (n > 2 && !strcmp(r->trace + n - 2, ".c")) {
		r->program = r->trace;
		r->trace = NULL;
	} else if (r->trace) {
		if (n > 7 && !strncmp(r->trace + n - 7, ".whyoom", 7))
			n -= 7;
		snprintf(r->beside, sizeof(r->beside), "%.*s.c", (int)n, r->trace);
		r->program = r->beside;
	}
}

static int take_option(struct request *r, int opt, char *const *argv)
{
	switch (opt) {
	case OPT_TIME:
		return cmd_number(&cmd_reduce, "--time", 1, &r->seconds);
	case OPT_EMIT:
		if (strcmp(optarg, "c") != 0)
			return cmd_usage(&cmd_reduce, "--emit is 'c', not '%s'", optarg);
		r->emit = true;
		return 0;
	default:
		return output_option(&cmd_reduce, opt, argv, &r->output);
	}
}

static int parse(int argc, char **argv, struct request *r)
{
	int opt, rc = 0;

	*r = (struct request){.seconds = SECONDS, .output = OUTPUT_DEFAULT};
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT, options, NULL)) != -1)
		rc = take_option(r, opt, argv);
	if (!rc)
		rc = cmd_wants_trace(&cmd_reduce, argc);
	if (rc)
		return rc;
	r->trace = r->output.path;
	if (!r->trace && !r->emit)
		r->trace = "small.whyoom";
	if (r->emit)
		name_program(r);
	return 0;
}

struct check {
	struct replay_request replay;
	enum cause cause;
	bool same; /* a replay of the original fails at the recorded request */
};

/* 1, 0 or negative. */
static int replays(const struct check *c, const struct trace_set *set,
    const struct verdict_result *v, struct err *err)
{
	/* A limit on address space counts memory whether it is written to or not. */
	struct replay_request request = c->replay;
	struct replay_result result = {0};
	int rc;

	request.no_touch = v->failure.limit == LIMIT_AS || v->failure.limit == LIMIT_DATA;
	rc = v->failure.kind == FAILURE_CUDA_OOM ? replay_device(v, &request, &result, err)
						 : replay_host(set, v, &request, &result, err);
	if (!rc)
		rc = result.same;
	replay_fini(&result);
	return rc;
}

/* Returns whether the trace at `path` has the same cause and, if the original failed in a replay,
 * fails in one, too. */
static int fails(void *arg, const char *path, struct err *err)
{
	const struct check *c = arg;
	struct verdict_result v;
	struct err why = {""};
	struct trace_set set;
	int rc = trace_set_open(path, &set, err);

	if (rc)
		return rc;
	rc = verdict_of_set(&set, NULL, &v, err);
	if (!rc) {
		rc = v.failure.kind != FAILURE_NONE && v.verdict.cause == c->cause;
		if (rc && c->same)
			rc = replays(c, &set, &v, &why);
		/* Another program may use the machine's memory at the moment. */
		if (rc < 0 && !stopped)
			note("one reduction could not be replayed and is undone: %s", why.text);
		rc = rc < 0 ? 0 : rc;
		verdict_fini(&v);
	}
	trace_set_close(&set);
	return rc;
}

static int emit(const char *path, const char *program, struct err *err)
{
	struct verdict_result v;
	struct trace_set set;
	struct program steps = {0};
	struct str text = {0};
	int rc = trace_set_open(path, &set, err);

	if (rc)
		return rc;
	rc = verdict_of_set(&set, NULL, &v, err);
	if (!rc) {
		rc = steps_read(&v, &steps, err);
		if (!rc)
			rc = emit_c(&v, &steps, &text, err);
		if (!rc)
			rc = output_write(&text, program, err);
		verdict_fini(&v);
	}
	steps_fini(&steps);
	str_free(&text);
	trace_set_close(&set);
	return rc;
}

/* Names the small trace; a temporary one, if only the program is wanted. */
static int name_trace(const struct request *r, char path[PATH_MAX], struct err *err)
{
	const char *where = getenv("TMPDIR");

	if (r->trace) {
		snprintf(path, PATH_MAX, "%s", r->trace);
		return access(path, F_OK) ? 0 : err_set(err, -EEXIST, "%s already exists", path);
	}
	snprintf(path, PATH_MAX, "%.200s/whyoom-reduce.%ld", where && *where ? where : "/tmp",
	    (long)getpid());
	return 0;
}

static int reduce(const struct trace_set *set, const struct verdict_result *verdict,
    const struct request *r, const char *path, struct reduce_result *result, struct err *err)
{
	struct reduce_request request = {.seconds = (double)r->seconds};
	struct check check = {.cause = verdict->verdict.cause};
	struct replay_parts parts;
	struct err why = {""};
	int rc = replay_parts_find(&parts, &check.replay, err);

	/* Making a cgroup for each of many replays would take too long. */
	check.replay.parent = (struct group_parent){0};
	if (!rc && verdict->failure.kind != FAILURE_NONE) {
		/* If this machine cannot replay the original, the verdict alone decides. */
		check.same = replays(&check, set, verdict, &why) == 1;
	}
	sigaction(SIGINT, &(struct sigaction){.sa_handler = stop}, NULL);
	request.stop = &stopped;
	request.fails = fails;
	request.arg = &check;
	if (!rc)
		rc = reduce_set(set, verdict, &request, path, result, err);
	result->replayed = check.same;
	snprintf(result->why, sizeof(result->why), "%.250s", why.text);
	return rc;
}

static int show(const struct trace_set *set, const void *arg, struct err *err)
{
	const struct request *r = arg;
	struct report_style style = report_style_of(STDOUT_FILENO);
	struct verdict_result verdict;
	struct reduce_result result;
	struct str text = {0};
	char path[PATH_MAX];
	int rc = name_trace(r, path, err);

	if (!rc)
		rc = verdict_of_set(set, NULL, &verdict, err);
	if (rc)
		return rc;
	if (!r->trace)
		unfinished_directory(path);
	rc = reduce(set, &verdict, r, path, &result, err);
	if (!rc && r->emit)
		rc = emit(path, r->program, err);
	if (!rc && r->trace) {
		struct reduce_view view = {&result, path, r->emit ? r->program : NULL};

		r->output.format->reduce(&view, &style, &text);
		rc = output_write(&text, NULL, err);
	} else if (!r->trace) {
		reduce_remove(path);
	}
	str_free(&text);
	verdict_fini(&verdict);
	return rc;
}

static int reduce_main(int argc, char **argv)
{
	struct request r;

	return traces_show(parse(argc, argv, &r), argc, argv, show, &r);
}

const struct command cmd_reduce = {
    .name = "reduce",
    .arguments = "TRACE... [OPTION...]",
    .summary = "find the smallest trace that fails for the same cause",
    .result = FORMAT_OF_reduce,
    .details = CMD_TRACE
    "Everything that the failure does not need is left out, in ever smaller portions, and\n"
    "limits and measurements are lowered by as much. The result is a trace that every command\n"
    "reads.\n\n"
    "  -o, --output DIR                   the result, which must not exist (small.whyoom)\n"
    "      --emit c                       also write a C program that fails the same way; with\n"
    "                                     -o FILE.c, or without -o to stdout, only that\n"
    "      --time SECONDS                 search for at most this long (120)\n"
    "      --format FORMATS\n"
    "  -h, --help                         this help\n",
    .main = reduce_main,
};
