/*
 * replay.c - `whyoom replay`: do the recorded requests fail again, without the program?
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "cmd/replay_parts.h"
#include "cmd/run/library.h"
#include "util/progress.h"
#include "util/text/fmt.h"
#include "verdict/verdict.h"

enum {
	OPT_COMPARE = 256,
	OPT_MEMORY,
	OPT_NO_TOUCH,
	OPT_HOLD,
	OPT_UNTIL,
	OPT_THROUGH,
	OPT_CONF,
	OPT_SPEED,
	OPT_PYTHON
};

static const struct option options[] = {
    {"compare", required_argument, NULL, OPT_COMPARE},
    {"allocator", required_argument, NULL, OPT_COMPARE},
    {"memory", required_argument, NULL, OPT_MEMORY},
    {"no-touch", no_argument, NULL, OPT_NO_TOUCH},
    {"hold", no_argument, NULL, OPT_HOLD},
    {"until", required_argument, NULL, OPT_UNTIL},
    {"through", required_argument, NULL, OPT_THROUGH},
    {"alloc-conf", required_argument, NULL, OPT_CONF},
    {"speed", required_argument, NULL, OPT_SPEED},
    {"python", required_argument, NULL, OPT_PYTHON},
    OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

/* Beyond these bounds a replay takes years, or its pauses are shorter than the clock can tell. */
#define SPEED_MIN 0.001
#define SPEED_MAX 1e6

struct request {
	struct replay_request replay;
	struct replay_parts parts;
	char script[PATH_MAX];
	const char *python; /* NULL: found by the command */
	bool through;
	struct output output;
};

static int take_allocators(struct replay_request *r, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, ",");
		char name[32];
		const struct play_allocator *a;

		snprintf(name, sizeof(name), "%.*s", (int)(n < 31 ? n : 31), text);
		a = play_allocator(name);
		if (!a)
			return cmd_usage(&cmd_replay, "there is no allocator '%s', only %s", name,
			    play_allocator_names());
		if (r->allocator_count == REPLAY_ALLOCATORS)
			return cmd_usage(&cmd_replay, "at most %u allocators", REPLAY_ALLOCATORS);
		r->allocators[r->allocator_count++] = a;
		text += n + (text[n] == ',');
	}
	return 0;
}

static int take_settings(struct replay_request *r, const char *text)
{
	struct caching_settings settings;
	struct err err = {""};

	caching_settings_init(&settings);
	if (!caching_settings_parse(&settings, text, &err))
		return cmd_usage(&cmd_replay, "--alloc-conf: %s", err.text);
	if (settings.foreign_backend)
		return cmd_usage(&cmd_replay, "--alloc-conf: the backend cudaMallocAsync is the "
					      "driver's allocator, which has no model");
	r->alloc_conf = text;
	return 0;
}

static int take_speed(struct replay_request *r, const char *text)
{
	char *end;

	r->speed = 0;
	if (!strcmp(text, "max"))
		return 0;
	r->speed = strtod(text, &end);
	if (*end || end == text || !(r->speed >= SPEED_MIN && r->speed <= SPEED_MAX))
		return cmd_usage(
		    &cmd_replay, "--speed is a factor (1: as recorded) or 'max', not '%s'", text);
	return 0;
}

static int take_option(struct request *r, int opt, char *const *argv)
{
	switch (opt) {
	case OPT_COMPARE:
		return take_allocators(&r->replay, optarg);
	case OPT_MEMORY:
		if (fmt_parse_size(optarg, &r->replay.memory) || !r->replay.memory)
			return cmd_usage(
			    &cmd_replay, "--memory is a size, as 24GiB, not '%s'", optarg);
		return 0;
	case OPT_NO_TOUCH:
		r->replay.no_touch = true;
		return 0;
	case OPT_HOLD:
		r->replay.hold = true;
		return 0;
	case OPT_UNTIL:
		r->replay.hold_at_end = !strcmp(optarg, "end");
		if (!r->replay.hold_at_end && strcmp(optarg, "failure") != 0)
			return cmd_usage(
			    &cmd_replay, "--until is 'failure' or 'end', not '%s'", optarg);
		return 0;
	case OPT_THROUGH:
		if (strcmp(optarg, "torch") != 0)
			return cmd_usage(&cmd_replay, "--through is torch, not '%s'", optarg);
		r->through = true;
		return 0;
	case OPT_SPEED:
		return take_speed(&r->replay, optarg);
	case OPT_CONF:
		return take_settings(&r->replay, optarg);
	case OPT_PYTHON:
		r->python = optarg;
		return 0;
	default:
		return output_option(&cmd_replay, opt, argv, &r->output);
	}
}

static int parse(int argc, char **argv, struct request *r)
{
	int opt, rc = 0;

	*r = (struct request){.output = OUTPUT_DEFAULT};
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT, options, NULL)) != -1)
		rc = take_option(r, opt, argv);
	if (!rc)
		rc = cmd_wants_trace(&cmd_replay, argc);
	if (!rc && r->python && !r->through)
		rc = cmd_usage(&cmd_replay, "--python is for --through torch");
	return rc;
}

static int find_parts(struct request *r, struct err *err)
{
	int rc = replay_parts_find(&r->parts, &r->replay, err);

	if (rc || !r->through)
		return rc;
	r->replay.python = r->python ? r->python : "python3";
	r->replay.through_torch = r->script;
	return run_library_through(r->script, err);
}

/* Waits until the held process ends. */
static void hold(int pid)
{
	fprintf(stderr,
	    "whyoom: process %d is stopped at the failure, or at the end. Its blocks are in "
	    "`whyoom_blocks`;\n"
	    "`whyoom map` says which call sites they belong to.\n"
	    "    gdb -p %d\n"
	    "Ctrl-C ends both.\n",
	    pid, pid);
	progress_unwatch();
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int show(const struct trace_set *set, const void *arg, struct err *err)
{
	struct request r = *(const struct request *)arg;
	struct report_style style = output_style(&r.output);
	struct verdict_result verdict;
	struct replay_result result = {0};
	struct str text = {0};
	bool device;
	int rc = find_parts(&r, err);

	if (rc)
		return rc;
	rc = verdict_of_set(set, NULL, &verdict, err);
	if (rc)
		return rc;
	if (verdict.volume) {
		rc = err_set(err, -ENOTSUP,
		    "a file system in memory ran full, and a replay writes no files, so it cannot "
		    "fail the same way; `whyoom what-if --memory` says what would have fitted");
		verdict_fini(&verdict);
		return rc;
	}
	device = verdict.failure.kind == FAILURE_CUDA_OOM || replay_wants_torch(&r.replay);
	if (device && r.replay.speed > 0)
		fputs("whyoom: --speed is ignored: it is for host memory, not for a device's\n",
		    stderr);
	rc = device ? replay_device(&verdict, &r.replay, &result, err)
		    : replay_host(set, &verdict, &r.replay, &result, err);
	if (!rc) {
		r.output.format->replay(&result, &style, &text);
		rc = output_write(&text, r.output.path, err);
	}
	if (!rc && result.held)
		hold(result.held);
	str_free(&text);
	replay_fini(&result);
	verdict_fini(&verdict);
	return rc;
}

static int replay_main(int argc, char **argv)
{
	struct request r;

	return traces_show(parse(argc, argv, &r), argc, argv, show, &r);
}

const struct command cmd_replay = {
    .name = "replay",
    .arguments = "TRACE... [OPTION...]",
    .summary = "repeat the recorded requests without the program, to see whether they fail again",
    .result = FORMAT_OF_replay,
    .details = CMD_TRACE
    "Its requests are repeated in their order, on a real allocator and under the recorded\n"
    "limit.\n\n"
    "      --compare NAME[,NAME...]       on each of glibc, jemalloc, tcmalloc, mimalloc\n"
    "                                     (default: the recorded one)\n"
    "      --memory SIZE                  under a limit of that size\n"
    "      --speed N|max                  N times as fast as recorded: 1 is as recorded\n"
    "                                     (default: max, as fast as possible)\n"
    "      --no-touch                     do not write to the memory\n"
    "      --hold                         stop at the failure, for a debugger\n"
    "      --until failure|end            with --hold: where to stop; end is for a replay that\n"
    "                                     does not fail\n"
    "      --alloc-conf SETTINGS          on PyTorch's allocator with these settings, as in\n"
    "                                     PYTORCH_CUDA_ALLOC_CONF\n"
    "      --through torch                also on PyTorch's own allocator, not only its model\n"
    "      --python PATH                  the Python that has PyTorch (default: python3)\n"
    "      --format FORMATS\n"
    "  -o, --output FILE                  write there instead of to stdout\n"
    "  -h, --help                         this help\n",
    .main = replay_main,
};
