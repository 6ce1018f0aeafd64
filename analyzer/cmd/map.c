/*
 * map.c - `whyoom map`: the layout of memory at one moment.
 */
#include <getopt.h>

#include "cmd/cmd.h"
#include "cmd/common/moment.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "cmd/report.h"
#include "report/map.h"

enum { OPT_AT = 256, OPT_SPACE, OPT_PID };

static const struct option options[] = {
    {"at", required_argument, NULL, OPT_AT},
    {"space", required_argument, NULL, OPT_SPACE},
    {"pid", required_argument, NULL, OPT_PID},
    {"limit", required_argument, NULL, 'n'},
    OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct request {
	struct moment_request moment;
	struct output output;
	uint32_t limit;
};

static int take_option(struct request *r, int opt, char *const *argv)
{
	uint64_t value;

	switch (opt) {
	case OPT_AT:
		return moment_parse(optarg, &r->moment) ? 0
							: cmd_usage(&cmd_map, MOMENT_USAGE, optarg);
	case OPT_SPACE:
		r->moment.space = optarg;
		return 0;
	case OPT_PID:
		return cmd_number(&cmd_map, "--pid", 1, &r->moment.pid);
	case 'n':
		if (cmd_number(&cmd_map, "--limit", 0, &value))
			return CMD_USAGE;
		r->limit = (uint32_t)value;
		return 0;
	default:
		return output_option(&cmd_map, opt, argv, &r->output);
	}
}

static int parse(int argc, char **argv, struct request *r)
{
	int opt, rc = 0;

	*r = (struct request){.output = OUTPUT_DEFAULT, .limit = 16};
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT "n:", options, NULL)) != -1)
		rc = take_option(r, opt, argv);
	return rc ? rc : cmd_wants_trace(&cmd_map, argc);
}

/* Adds the last levels before the moment that the driver and PyTorch's allocator reported. */
static void add_levels(struct map_view *v, const struct moment_view *m)
{
	const struct spaces *s = m->model->spaces;
	const struct space *cuda, *torch;
	uint64_t allocated;

	if (!m->space || m->space->kind > SPACE_TORCH || m->space->kind == SPACE_OTHER)
		return;
	cuda = spaces_of(s, SPACE_CUDA, m->space->device);
	torch = spaces_of(s, SPACE_TORCH, m->space->device);
	if (cuda) {
		v->samples = cuda->samples;
		v->sample_count = cuda->sample_count;
	}
	v->free_known = cuda &&
			levels_get(&cuda->model->measured.levels, TRACE_LEVEL_DEV_FREE, &v->free) &&
			levels_get(&cuda->model->measured.levels, TRACE_LEVEL_DEV_TOTAL, &v->total);
	v->reserved_known =
	    torch &&
	    levels_get(&torch->model->measured.levels, TRACE_LEVEL_RESERVED, &v->reserved) &&
	    levels_get(&torch->model->measured.levels, TRACE_LEVEL_ALLOCATED, &allocated);
}

static int show(const struct trace_set *set, const void *request, struct err *err)
{
	const struct request *r = request;
	struct report_style style = output_style(&r->output);
	struct moment_view moment;
	struct space_map map = {0};
	struct map_view view = {.map = &map, .limit = r->limit};
	struct str text = {0};
	int rc;

	if (r->output.format->pictures)
		return report_map(set, &r->moment, &r->output, err);
	rc = moment_find(set, &r->moment, &moment, err);
	if (rc)
		return rc;
	view.model = moment.model;
	view.at = moment.name[0] ? moment.name : moment.at;
	view.pid = trace_facts(moment.trace)->pid;
	view.time_ns = moment.time_ns;
	trace_set_damage(set, moment.trace, &view.damage);
	view.request = moment.request;
	view.segment = moment.failed && moment.space ? moment.failure.segment : 0;
	add_levels(&view, &moment);
	rc = moment.space ? space_map_make(moment.model, moment.space, moment.request, &map)
			  : space_map_host(moment.model, moment.model->feed.each_live,
				moment.model->feed.self, moment.request, &map);
	if (rc) {
		err_set(err, rc, "no memory for the map");
	} else {
		r->output.format->map(&view, &style, &text);
		rc = output_write(&text, r->output.path, err);
	}
	str_free(&text);
	space_map_fini(&map);
	moment_fini(&moment);
	return rc;
}

static int map_main(int argc, char **argv)
{
	struct request r;

	return traces_show(parse(argc, argv, &r), argc, argv, show, &r);
}

const struct command cmd_map = {
    .name = "map",
    .arguments = "[OPTION...] TRACE...",
    .summary = "draw the memory: segments, blocks, holes and what pins them",
    .result = FORMAT_OF_map,
    .details = CMD_TRACE
    "\n"
    "      --at failure|peak|end|SECONDS  the moment (default: the failure, else the peak)\n"
    "      --space SPACE                  torch:0, cuda:0, pool:0, managed, pinned, va, host, ...\n"
    "                                     (default: the one that failed)\n"
    "      --format FORMATS\n"
    "      --pid PID                      the process, if there are several\n"
    "  -n, --limit N                      draw N segments (default: 16; 0: all)\n"
    "  -o, --output FILE                  write there instead of to stdout\n"
    "  -h, --help                         this help\n",
    .main = map_main,
};
