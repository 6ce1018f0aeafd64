/*
 * reduce.c - `whyoom reduce`: the smallest trace that still fails for the same cause.
 */
#include "reduce/reduce.h"

#include <errno.h>
#include <getopt.h>
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
#include "report/reduce.h"
#include "util/text/fmt.h"
#include "util/text/note.h"
#include "util/unfinished.h"
#include "verdict/verdict.h"

enum { OPT_FORMAT = 256, OPT_TIME, OPT_EMIT };

static const struct option options[] = {
    {"format", required_argument, NULL, OPT_FORMAT},
    {"time", required_argument, NULL, OPT_TIME},
    {"emit", required_argument, NULL, OPT_EMIT},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

#define SECONDS 120.0

static volatile sig_atomic_t stopped;

/* Ends the search, not the command: what was found until then is made. A second one ends that. */
static void stop(int signal)
{
	stopped = 1;
	unfinished_watch_signal(signal);
}

struct request {
	struct reduce_request reduce;
	const char *output; /* the small trace; NULL: only the program is wanted */
	const char *program; /* NULL: to stdout */
	char beside[PATH_MAX]; /* the program's name, where it is made of the trace's */
	bool emit, json;
};

/* small.whyoom has its program in small.c. */
static void name_program(struct request *r)
{
	size_t n = r->output ? strlen(r->output) : 0;

	while (n > 1 && r->output[n - 1] == '/')
		n--;
	if (n > 2 && !strcmp(r->output + n - 2, ".c")) {
		r->program = r->output;
		r->output = NULL;
	} else if (r->output) {
		if (n > 7 && !strncmp(r->output + n - 7, ".whyoom", 7))
			n -= 7;
		snprintf(r->beside, sizeof(r->beside), "%.*s.c", (int)n, r->output);
		r->program = r->beside;
	}
}

static int parse(int argc, char **argv, struct request *r)
{
	uint64_t seconds;
	char *end;
	int opt;

	*r = (struct request){.reduce.seconds = SECONDS};
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":o:h", options, NULL)) != -1) {
		switch (opt) {
		case OPT_FORMAT:
			if (cmd_format(&cmd_reduce, optarg, &r->json))
				return CMD_USAGE;
			break;
		case OPT_TIME:
			seconds = strtoull(optarg, &end, 10);
			if (*optarg < '1' || *optarg > '9' || *end)
				return cmd_usage(
				    &cmd_reduce, "--time is a number of seconds, not '%s'", optarg);
			r->reduce.seconds = (double)seconds;
			break;
		case OPT_EMIT:
			if (strcmp(optarg, "c") != 0)
				return cmd_usage(&cmd_reduce, "--emit is 'c', not '%s'", optarg);
			r->emit = true;
			break;
		case 'o':
			r->output = optarg;
			break;
		case 'h':
			cmd_help(&cmd_reduce, stdout);
			return -1;
		default:
			return cmd_stray(&cmd_reduce, opt, argv[optind - 1]);
		}
	}
	if (optind == argc)
		return cmd_usage(&cmd_reduce, "no trace: name a directory that `whyoom run` made");
	if (!r->output && !r->emit)
		r->output = "small.whyoom";
	if (r->emit)
		name_program(r);
	return 0;
}

/* --- does it still fail there? --- */

struct check {
	struct replay_request replay;
	const char *cause;
	bool same; /* the whole trace failed where its record does */
};

/* 1, 0 or negative. */
static int replays(const struct check *c, const struct trace_set *set,
    const struct verdict_result *v, struct err *err)
{
	/* What is written to does not count against a limit of address space. */
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

/* What was made is read as anybody would read it: is it the same cause, and if the whole trace
 * failed when it was replayed, does this one? */
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
		rc = v.failure.kind != FAILURE_NONE && !strcmp(v.verdict.cause, c->cause);
		if (rc && c->same)
			rc = replays(c, &set, &v, &why);
		/* As when somebody else has taken the machine's memory meanwhile. */
		if (rc < 0 && !stopped)
			note(
			    "what was left out just then stays in, as it could not be replayed: %s",
			    why.text);
		rc = rc < 0 ? 0 : rc;
		verdict_fini(&v);
	}
	trace_set_close(&set);
	return rc;
}

/* --- the program --- */

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

/* Where the small trace is made, if it is wanted at all. */
static int name_trace(const struct request *r, char path[PATH_MAX], struct err *err)
{
	const char *where = getenv("TMPDIR");

	if (r->output) {
		snprintf(path, PATH_MAX, "%s", r->output);
		return access(path, F_OK) ? 0 : err_set(err, -EEXIST, "%s is there already", path);
	}
	snprintf(path, PATH_MAX, "%.200s/whyoom-reduce.%ld", where && *where ? where : "/tmp",
	    (long)getpid());
	return 0;
}

static int reduce(const struct trace_set *set, const struct verdict_result *verdict,
    const struct request *r, const char *path, struct reduce_result *result, struct err *err)
{
	struct reduce_request request = r->reduce;
	struct check check = {.cause = verdict->verdict.cause};
	struct replay_parts parts;
	struct err why = {""};
	int rc = replay_parts_find(&parts, &check.replay, err);

	/* Of many replays: without a cgroup for each. */
	check.replay.callsite = (struct group_callsite){0};
	if (!rc && verdict->failure.kind != FAILURE_NONE) {
		/* Where it cannot be replayed here, the verdict alone has to do. */
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
	if (!r->output)
		unfinished_directory(path);
	rc = reduce(set, &verdict, r, path, &result, err);
	if (!rc && r->emit)
		rc = emit(path, r->program, err);
	if (!rc && r->output) {
		report_reduce(&result, path, r->emit ? r->program : NULL, r->json, &style, &text);
		rc = output_write(&text, NULL, err);
	} else if (!r->output) {
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
    .summary = "the smallest trace that fails for the same cause",
    .details =
	"TRACE is a directory that `whyoom run` made, or one file of it. What it fails without\n"
	"is left out, in ever smaller portions; limits and measurements are less by it. SMALL is\n"
	"a directory that every command reads.\n\n"
	"  -o, --output DIR                   SMALL, which must not be there yet (small.whyoom)\n"
	"      --time SECONDS                 search for so long at most (120)\n"
	"      --format text|json\n"
	"  -h, --help                         this help\n",
    .main = reduce_main,
};
