/*
 * sites.c - `whyoom sites`: the stacks behind the bytes.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/moment.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "model/feed_until.h"
#include "report/report.h"
#include "verdict/result.h"
#include "verdict/subject.h"

enum { OPT_FORMAT = 256, OPT_AT, OPT_BY, OPT_SPACE, OPT_PID, OPT_NATIVE };

static const struct option options[] = {
    {"format", required_argument, NULL, OPT_FORMAT},
    {"at", required_argument, NULL, OPT_AT},
    {"by", required_argument, NULL, OPT_BY},
    {"space", required_argument, NULL, OPT_SPACE},
    {"pid", required_argument, NULL, OPT_PID},
    {"limit", required_argument, NULL, 'n'},
    {"output", required_argument, NULL, 'o'},
    {"native", no_argument, NULL, OPT_NATIVE},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
	struct moment_request moment;
	const char *output;
	enum sites_by by;
	uint32_t limit;
	bool json, verbose, native;
};

static bool number(const char *text, double most, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	return !errno && end != text && !*end && isfinite(*out) && *out >= 0 && *out <= most;
}

static int parse(int argc, char **argv, struct request *r)
{
	double value;
	int opt;

	*r = (struct request){.by = SITES_LIVE, .limit = 20};
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":n:o:vh", options, NULL)) != -1) {
		switch (opt) {
		case OPT_FORMAT:
			if (cmd_format(&cmd_sites, optarg, &r->json))
				return CMD_USAGE;
			break;
		case OPT_AT:
			if (!moment_parse(optarg, &r->moment))
				return cmd_usage(&cmd_sites, MOMENT_USAGE, optarg);
			break;
		case OPT_BY:
			if (sites_by_name(optarg) < 0)
				return cmd_usage(&cmd_sites,
				    "--by is live, peak, total, growth or leaked, not '%s'",
				    optarg);
			r->by = (enum sites_by)sites_by_name(optarg);
			break;
		case OPT_SPACE:
			r->moment.space = optarg;
			break;
		case OPT_PID:
			if (!number(optarg, 4e9, &value) || value < 1)
				return cmd_usage(&cmd_sites, "--pid is a number, not '%s'", optarg);
			r->moment.pid = (uint64_t)value;
			break;
		case 'n':
			if (!number(optarg, 4e9, &value))
				return cmd_usage(
				    &cmd_sites, "--limit is a number, not '%s'", optarg);
			r->limit = (uint32_t)value;
			break;
		case 'o':
			r->output = optarg;
			break;
		case OPT_NATIVE:
			r->native = true;
			break;
		case 'v':
			r->verbose = true;
			break;
		case 'h':
			cmd_help(&cmd_sites, stdout);
			return -1;
		default:
			return cmd_stray(&cmd_sites, opt, argv[optind - 1]);
		}
	}
	if (optind == argc)
		return cmd_usage(&cmd_sites, "no trace: name a directory that `whyoom run` made");
	return 0;
}

static int print(const struct trace_set *set, const struct trace *t, const struct model *m,
    enum moment moment, const char *at, const struct request *r, struct err *err)
{
	struct report_style style = report_style_of(r->output ? -1 : STDOUT_FILENO);
	struct callsites *callsites = NULL;
	struct str text = {0};
	int rc = callsites_new(m, moment, &callsites, err);

	if (!rc) {
		struct sites_view view = {m, callsites, at, r->by, r->limit, {0}};

		trace_set_damage(set, t, &view.damage);
		style.verbose = r->verbose;
		style.native = r->native;
		if (r->json)
			report_sites_json(&view, &text);
		else
			report_sites_text(&view, &style, &text);
		rc = output_write(&text, r->output, err);
	}
	str_free(&text);
	callsites_free(callsites);
	return rc;
}

/* Of a space beside the host's: its model stands at the moment, but for the high-water mark, which
 * it knows itself. */
static int show_space(const struct trace_set *set, const struct request *r, struct err *err)
{
	struct moment_view moment;
	int rc = moment_find(set, &r->moment, &moment, err);

	if (rc)
		return rc;
	rc = print(set, moment.trace, moment.space->model, AT_END,
	    moment.name[0] ? moment.name : moment.at, r, err);
	moment_fini(&moment);
	return rc;
}

static int show(const struct trace_set *set, const void *request, struct err *err)
{
	const struct request *r = request;
	const char *at = r->moment.at, *space = r->moment.space;
	double seconds = r->moment.seconds;
	enum moment moment = AT_END;
	struct model *m = NULL;
	struct trace *t = NULL;
	char name[64];
	int rc;

	if (space && strcmp(space, "host") != 0)
		return show_space(set, r, err);
	rc = moment_process(set, r->moment.pid, &t, err);
	if (rc)
		return rc;
	/* At a second: the events until then, and no more. */
	rc = seconds > 0 ? feed_until_model(
			       feed_of_trace(t), UINT64_MAX, (uint64_t)(seconds * 1e9), &m, err)
			 : subject_model(feed_of_trace(t), &m, err);
	if (rc)
		return rc;
	if (seconds > 0) {
		snprintf(name, sizeof(name), "%gs", seconds);
		at = name;
	} else if (!at) {
		at = model_failure(m) ? "failure" : "peak";
	}
	if (strcmp(at, "failure") == 0) {
		if (m->failure_count)
			moment = AT_FAILURE;
		else
			rc = err_set(
			    err, -ENOENT, "no request was refused in that trace: use --at peak");
	} else if (strcmp(at, "peak") == 0) {
		moment = AT_PEAK;
	}
	if (!rc)
		rc = print(set, t, m, moment, at, r, err);
	model_free(m);
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
    .summary = "show the stacks behind the bytes",
    .details =
	"TRACE is a directory that `whyoom run` made, or one file of it.\n\n"
	"      --at failure|peak|end|SECONDS  the moment (default: the failure, else the peak)\n"
	"      --by live|peak|total|growth|leaked\n"
	"                                     the order (default: live)\n"
	"      --format text|json\n"
	"      --space SPACE                  torch:0, cuda:0, pool:0, managed, ... (default: "
	"host)\n"
	"      --pid PID                      of several processes, this one\n"
	"  -n, --limit N                      the first N (default: 20; 0: all)\n"
	"  -o, --output FILE                  write there instead of to stdout\n"
	"  -v, --verbose                      whole stacks\n"
	"  -h, --help                         this help\n",
    .main = sites_main,
};
