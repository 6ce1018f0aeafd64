/*
 * map.c - `whyoom map`: who sits where, at one moment.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/moment.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "report/map.h"

enum { OPT_FORMAT = 256, OPT_AT, OPT_SPACE, OPT_PID };

static const struct option options[] = {
    {"format", required_argument, NULL, OPT_FORMAT},
    {"at", required_argument, NULL, OPT_AT},
    {"space", required_argument, NULL, OPT_SPACE},
    {"pid", required_argument, NULL, OPT_PID},
    {"limit", required_argument, NULL, 'n'},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
	struct moment_request moment;
	const char *output;
	uint32_t limit;
	bool json;
};

static bool count(const char *text, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	*out = strtoull(text, &end, 10);
	return !*end && *out <= UINT32_MAX;
}

static int parse(int argc, char **argv, struct request *r)
{
	uint64_t value;
	int opt;

	*r = (struct request){.limit = 16};
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":n:o:h", options, NULL)) != -1) {
		switch (opt) {
		case OPT_FORMAT:
			if (cmd_format(&cmd_map, optarg, &r->json))
				return CMD_USAGE;
			break;
		case OPT_AT:
			if (!moment_parse(optarg, &r->moment))
				return cmd_usage(&cmd_map, MOMENT_USAGE, optarg);
			break;
		case OPT_SPACE:
			r->moment.space = optarg;
			break;
		case OPT_PID:
			if (!count(optarg, &value) || !value)
				return cmd_usage(&cmd_map, "--pid is a number, not '%s'", optarg);
			r->moment.pid = value;
			break;
		case 'n':
			if (!count(optarg, &value))
				return cmd_usage(&cmd_map, "--limit is a number, not '%s'", optarg);
			r->limit = (uint32_t)value;
			break;
		case 'o':
			r->output = optarg;
			break;
		case 'h':
			cmd_help(&cmd_map, stdout);
			return -1;
		default:
			return cmd_stray(&cmd_map, opt, argv[optind - 1]);
		}
	}
	if (optind == argc)
		return cmd_usage(&cmd_map, "no trace: name a directory that `whyoom run` made");
	return 0;
}

/* What the driver and PyTorch's allocator said of their levels until then. */
static void levels_of(struct map_view *v, const struct moment_view *m)
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
	struct report_style style = report_style_of(r->output ? -1 : STDOUT_FILENO);
	struct moment_view moment;
	struct space_map map = {0};
	struct map_view view = {.map = &map, .limit = r->limit};
	struct str text = {0};
	int rc = moment_find(set, &r->moment, &moment, err);

	if (rc)
		return rc;
	view.model = moment.model;
	view.at = moment.name[0] ? moment.name : moment.at;
	view.pid = trace_facts(moment.trace)->pid;
	view.time_ns = moment.time_ns;
	trace_set_damage(set, moment.trace, &view.damage);
	view.request = moment.request;
	view.segment = moment.failed && moment.space ? moment.failure.segment : 0;
	levels_of(&view, &moment);
	rc = moment.space ? space_map_make(moment.model, moment.space, moment.request, &map)
			  : space_map_host(moment.model, moment.model->feed.each_live,
				moment.model->feed.self, moment.request, &map);
	if (rc) {
		err_set(err, rc, "no memory for the map");
	} else {
		if (r->json)
			report_map_json(&view, &text);
		else
			report_map_text(&view, &style, &text);
		rc = output_write(&text, r->output, err);
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
    .summary = "show who sits where: segments, blocks, holes and what holds them",
    .details =
	"TRACE is a directory that `whyoom run` made, or one file of it.\n\n"
	"      --at failure|peak|end|SECONDS  the moment (default: the failure, else the peak)\n"
	"      --space SPACE                  torch:0, cuda:0, pool:0, managed, pinned, va, host, "
	"...\n"
	"                                     (default: the one that failed)\n"
	"      --format text|json\n"
	"      --pid PID                      of several processes, this one\n"
	"  -n, --limit N                      draw N segments (default: 16; 0: all)\n"
	"  -o, --output FILE                  write there instead of to stdout\n"
	"  -h, --help                         this help\n",
    .main = map_main,
};
