/*
 * flame.c - `whyoom flame`: a flame graph of the memory in the terminal.
 */
#include <getopt.h>

#include "cmd/cmd.h"
#include "cmd/common/flame_tree.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "cmd/common/whole_run.h"

enum { OPT_AT = 256, OPT_SPACE, OPT_PID, OPT_MEASURE, OPT_DEPTH };

/* Two screens; most stacks are less deep below the callers that all share. */
#define DEPTH 48u

static const struct option options[] = {
    {"at", required_argument, NULL, OPT_AT},
    {"space", required_argument, NULL, OPT_SPACE},
    {"pid", required_argument, NULL, OPT_PID},
    {"measure", required_argument, NULL, OPT_MEASURE},
    {"depth", required_argument, NULL, OPT_DEPTH},
    {"native", no_argument, NULL, OUTPUT_NATIVE},
    OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct request {
	struct moment_request moment;
	struct output output;
	enum export_measure measure;
	uint32_t depth;
};

static int take_option(struct request *r, int opt, char *const *argv)
{
	uint64_t value;

	switch (opt) {
	case OPT_AT:
		return moment_parse(optarg, &r->moment)
			   ? 0
			   : cmd_usage(&cmd_flame, MOMENT_USAGE, optarg);
	case OPT_SPACE:
		r->moment.space = optarg;
		return 0;
	case OPT_PID:
		return cmd_number(&cmd_flame, "--pid", 1, &r->moment.pid);
	case OPT_MEASURE:
		r->measure = export_measure_find(optarg);
		if (r->measure != MEASURES)
			return 0;
		return cmd_usage(&cmd_flame,
		    "--measure is live, peak, total, count or temporary, not '%s'", optarg);
	case OPT_DEPTH:
		if (cmd_number(&cmd_flame, "--depth", 0, &value))
			return CMD_USAGE;
		r->depth = (uint32_t)value;
		return 0;
	default:
		return output_option(&cmd_flame, opt, argv, &r->output);
	}
}

static int parse(int argc, char **argv, struct request *r)
{
	int opt, rc = 0;

	*r = (struct request){.output = OUTPUT_DEFAULT, .measure = MEASURE_LIVE, .depth = DEPTH};
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT, options, NULL)) != -1)
		rc = take_option(r, opt, argv);
	return rc ? rc : cmd_wants_trace(&cmd_flame, argc);
}

static int print(const struct trace_set *set, struct trace *t, const struct whole_run *m,
    const struct space_at *s, const char *space, const struct request *r, struct err *err)
{
	struct report_style style = output_style(&r->output);
	struct flame_tree tree;
	struct str text = {0};
	int rc = flame_tree_make(
	    &tree, set, t, s, space, r->measure, m->temporary, r->output.native, err);

	if (!rc) {
		tree.view.depth = r->depth;
		r->output.format->flame(&tree.view, &style, &text);
		rc = output_write(&text, r->output.path, err);
	}
	flame_tree_fini(&tree);
	str_free(&text);
	return rc;
}

static int show(const struct trace_set *set, const void *request, struct err *err)
{
	const struct request *r = request;
	struct moment_request one = r->moment;
	struct whole_run m = {0};
	struct trace *t = NULL;
	struct space_at s;
	int rc = moment_process(set, r->moment.pid, &t, err);

	if (!rc)
		rc = whole_run_read(t, r->measure == MEASURE_TEMPORARY, r->moment.seconds, &m, err);
	if (!rc && !one.space && moment_default_space(m.all))
		one.space = moment_default_space(m.all)->name;
	if (!rc)
		rc = moment_space(t, m.all, &one, &s, err);
	if (!rc) {
		rc = print(set, t, &m, &s, one.space, r, err);
		moment_fini(&s.view);
	}
	whole_run_fini(&m);
	return rc;
}

static int flame_main(int argc, char **argv)
{
	struct request r;

	return traces_show(parse(argc, argv, &r), argc, argv, show, &r);
}

const struct command cmd_flame = {
    .name = "flame",
    .arguments = "[OPTION...] TRACE...",
    .summary = "draw a flame graph of the memory in the terminal",
    .result = FORMAT_OF_flame,
    .details = CMD_TRACE
    "\n"
    "      --at failure|peak|end|SECONDS  the moment (default: the failure, else the peak)\n"
    "      --space SPACE                  host, torch:0, cuda:0, ... (default: the one that "
    "matters)\n"
    "      --measure live|peak|total|count|temporary\n"
    "                                     what a box is as wide as (default: live)\n"
    "      --format FORMATS\n"
    "      --depth N                      at most N rows (default: 48; 0: all)\n"
    "      --native                       show the frames of libc and the interpreter, too\n"
    "      --pid PID                      the process, if there are several\n"
    "  -o, --output FILE                  write there instead of to stdout\n"
    "  -h, --help                         this help\n",
    .main = flame_main,
};
