/*
 * sites.c - `whyoom sites`: the call sites that hold the memory.
 */
#include <getopt.h>

#include "cmd/cmd.h"
#include "cmd/common/flame_tree.h"
#include "cmd/common/moment.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "model/model.h"
#include "report/report.h"
#include "util/num.h"
#include "verdict/result.h"
#include "verdict/subject.h"

enum { OPT_AT = 256, OPT_BY, OPT_SPACE, OPT_PID, OPT_TREE, OPT_DEPTH };

#define LIMIT 20u
#define TREE_CHILDREN 5u /* of a frame */
#define TREE_DEPTH 60u

static const struct option options[] = {
    {"at", required_argument, NULL, OPT_AT},
    {"by", required_argument, NULL, OPT_BY},
    {"space", required_argument, NULL, OPT_SPACE},
    {"pid", required_argument, NULL, OPT_PID},
    {"limit", required_argument, NULL, 'n'},
    {"tree", no_argument, NULL, OPT_TREE},
    {"depth", required_argument, NULL, OPT_DEPTH},
    OUTPUT_STACKS,
    OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct request {
	struct moment_request moment;
	struct output output;
	enum sites_by by;
	uint32_t limit, depth; /* UINT32_MAX: the user chose none */
	bool tree;
};

static int take_option(struct request *r, int opt, char *const *argv)
{
	uint64_t value;

	switch (opt) {
	case OPT_AT:
		return moment_parse(optarg, &r->moment)
			   ? 0
			   : cmd_usage(&cmd_sites, MOMENT_USAGE, optarg);
	case OPT_BY:
		if (sites_by_name(optarg) < 0)
			return cmd_usage(&cmd_sites,
			    "--by is live, peak, total, growth or leaked, not '%s'", optarg);
		r->by = (enum sites_by)sites_by_name(optarg);
		return 0;
	case OPT_SPACE:
		r->moment.space = optarg;
		return 0;
	case OPT_PID:
		return cmd_number(&cmd_sites, "--pid", 1, &r->moment.pid);
	case 'n':
		if (cmd_number(&cmd_sites, "--limit", 0, &value))
			return CMD_USAGE;
		r->limit = (uint32_t)value;
		return 0;
	case OPT_TREE:
		r->tree = true;
		return 0;
	case OPT_DEPTH:
		if (cmd_number(&cmd_sites, "--depth", 0, &value))
			return CMD_USAGE;
		r->depth = (uint32_t)value;
		return 0;
	default:
		return output_option(&cmd_sites, opt, argv, &r->output);
	}
}

/* The tree has the measures that every stack has; growth and leaks are a call site's. */
static int check_tree(struct request *r)
{
	if (r->depth != UINT32_MAX && !r->tree)
		return cmd_usage(&cmd_sites, "--depth is for --tree");
	if (r->tree && (r->by == SITES_GROWTH || r->by == SITES_LEAKED))
		return cmd_usage(&cmd_sites, "a tree is --by live, peak or total");
	if (r->limit == UINT32_MAX)
		r->limit = r->tree ? TREE_CHILDREN : LIMIT;
	if (r->depth == UINT32_MAX)
		r->depth = TREE_DEPTH;
	return 0;
}

static int parse(int argc, char **argv, struct request *r)
{
	int opt, rc = 0;

	*r = (struct request){
	    .output = OUTPUT_DEFAULT, .by = SITES_LIVE, .limit = UINT32_MAX, .depth = UINT32_MAX};
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT "vn:", options, NULL)) != -1)
		rc = take_option(r, opt, argv);
	if (!rc)
		rc = check_tree(r);
	return rc ? rc : cmd_wants_trace(&cmd_sites, argc);
}

static int print(const struct trace_set *set, struct trace *t, const struct space_at *s,
    const struct request *r, struct err *err)
{
	struct report_style style = output_style(&r->output);
	struct callsites *callsites = NULL;
	struct str text = {0};
	int rc = callsites_new(s->model, s->moment, &callsites, err);

	if (!rc) {
		struct sites_view view = {s->model, callsites, s->at, r->by, r->limit, {0}};

		trace_set_damage(set, t, &view.damage);
		r->output.format->sites(&view, &style, &text);
		rc = output_write(&text, r->output.path, err);
	}
	str_free(&text);
	callsites_free(callsites);
	return rc;
}

static int print_tree(const struct trace_set *set, struct trace *t, const struct space_at *s,
    const struct request *r, struct err *err)
{
	static const enum export_measure measures[] = {[SITES_LIVE] = MEASURE_LIVE,
	    [SITES_PEAK] = MEASURE_PEAK,
	    [SITES_TOTAL] = MEASURE_TOTAL};
	struct report_style style = output_style(&r->output);
	struct flame_tree tree;
	struct str text = {0};
	int rc = flame_tree_make(
	    &tree, set, t, s, r->moment.space, measures[r->by], NULL, r->output.native, err);

	if (!rc) {
		tree.view.call_tree = true;
		tree.view.depth = r->depth;
		tree.view.children = r->limit;
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
	struct model *all = NULL;
	struct trace *t = NULL;
	struct space_at s;
	int rc = moment_process(set, r->moment.pid, &t, err);

	if (!rc)
		rc = subject_model(feed_of_trace(t), &all, err);
	if (!rc)
		rc = moment_space(t, all, &r->moment, &s, err);
	if (!rc) {
		rc = (r->tree ? print_tree : print)(set, t, &s, r, err);
		moment_fini(&s.view);
	}
	model_free(all);
	return rc;
}

static int sites_main(int argc, char **argv)
{
	struct request r;

	return traces_show(parse(argc, argv, &r), argc, argv, show, &r);
}

const struct command cmd_sites = {
    .name = "sites",
    .arguments = "[OPTION...] TRACE...",
    .summary = "list the call sites that hold the memory, with their stacks",
    .result = FORMAT_OF_sites,
    .details = CMD_TRACE
    "\n"
    "      --at failure|peak|end|SECONDS  the moment (default: the failure, else the peak)\n"
    "      --by live|peak|total|growth|leaked\n"
    "                                     the order (default: live)\n"
    "      --format FORMATS\n"
    "      --space SPACE                  torch:0, cuda:0, pool:0, managed, ... (default: host)\n"
    "      --pid PID                      the process, if there are several\n"
    "  -n, --limit N                      the first N (default: 20; 0: all)\n"
    "      --tree                         callers above, callees below; -n is then the callees of "
    "a\n"
    "                                     frame (default: 5)\n"
    "      --depth N                      of the tree, in frames (default: 60; 0: all)\n"
    "  -o, --output FILE                  write there instead of to stdout\n"
    "  -v, --verbose                      whole stacks\n"
    "      --native                       show the frames of libc and the interpreter, too\n"
    "  -h, --help                         this help\n",
    .main = sites_main,
};
