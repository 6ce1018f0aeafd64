/*
 * diff.c - `whyoom diff`: what changed between two traces, or two moments of one.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/common/moment.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "diff/diff.h"
#include "report/report.h"
#include "util/progress.h"

enum { OPT_AT = 256, OPT_AND, OPT_BY, OPT_SPACE, OPT_PID, OPT_PER_REQUEST, OPT_FAIL };

static const struct option options[] = {
    {"at", required_argument, NULL, OPT_AT},
    {"and", required_argument, NULL, OPT_AND},
    {"by", required_argument, NULL, OPT_BY},
    {"space", required_argument, NULL, OPT_SPACE},
    {"pid", required_argument, NULL, OPT_PID},
    {"per-request", no_argument, NULL, OPT_PER_REQUEST},
    {"fail-if-larger", required_argument, NULL, OPT_FAIL},
    {"limit", required_argument, NULL, 'n'},
    OUTPUT_STACKS,
    OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct request {
	struct moment_request a, b;
	bool at, and;
	struct diff_request diff;
	struct output output;
	uint32_t limit;
	double fail; /* share; less than 0: never */
};

/* "--pid 12" or "--pid 12,34": of A and B. */
static int take_pids(struct request *r)
{
	char *end;
	unsigned long long a, b;

	errno = 0;
	a = b = strtoull(optarg, &end, 10);
	if (*end == ',')
		b = strtoull(end + 1, &end, 10);
	if (errno || *end || !a || !b || a > UINT32_MAX || b > UINT32_MAX || *optarg == '-')
		return cmd_usage(&cmd_diff,
		    "--pid is a process, or one of A and one of B with a comma between, not '%s'",
		    optarg);
	r->diff.a.pid = a;
	r->diff.b.pid = b;
	return 0;
}

static int take_share(struct request *r)
{
	char *end;

	errno = 0;
	r->fail = strtod(optarg, &end) / 100;
	if (errno || end == optarg || strcmp(end, "%") != 0 || !(r->fail >= 0) ||
	    !isfinite(r->fail))
		return cmd_usage(
		    &cmd_diff, "--fail-if-larger is a percentage as 5%%, not '%s'", optarg);
	return 0;
}

static int take_by(struct request *r)
{
	for (enum diff_by by = 0; by < DIFF_BY_COUNT; by++)
		if (strcmp(optarg, diff_by_name(by)) == 0) {
			r->diff.by = by;
			return 0;
		}
	return cmd_usage(&cmd_diff, "--by is live or total, not '%s'", optarg);
}

static int take_option(struct request *r, int opt, char *const *argv)
{
	uint64_t value;

	switch (opt) {
	case OPT_AT:
		r->at = true;
		return moment_parse(optarg, &r->a) ? 0 : cmd_usage(&cmd_diff, MOMENT_USAGE, optarg);
	case OPT_AND:
		r->and = true;
		return moment_parse(optarg, &r->b)
			   ? 0
			   : cmd_usage(&cmd_diff,
				 "--and is failure, peak, end or seconds since the start, not '%s'",
				 optarg);
	case OPT_BY:
		return take_by(r);
	case OPT_SPACE:
		r->diff.space = optarg;
		return 0;
	case OPT_PID:
		return take_pids(r);
	case OPT_PER_REQUEST:
		r->diff.per_request = true;
		return 0;
	case OPT_FAIL:
		return take_share(r);
	case 'n':
		if (cmd_number(&cmd_diff, "--limit", 0, &value))
			return CMD_USAGE;
		r->limit = (uint32_t)value;
		return 0;
	default:
		return output_option(&cmd_diff, opt, argv, &r->output);
	}
}

static int parse(int argc, char **argv, struct request *r)
{
	int opt, rc = 0, paths;

	*r = (struct request){.output = OUTPUT_DEFAULT, .limit = 20, .fail = -1};
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT "vn:", options, NULL)) != -1)
		rc = take_option(r, opt, argv);
	if (rc)
		return rc;
	paths = argc - optind;
	if (paths == 1 && !(r->at && r->and))
		return cmd_usage(
		    &cmd_diff, "give two traces, or one with two moments: --at 10s --and 60s");
	if (paths != 1 && paths != 2)
		return cmd_usage(
		    &cmd_diff, "give two traces, A and B, or one; there are %d", paths);
	if (!r->and)
		r->b = r->a;
	r->diff.a.at = r->a.at;
	r->diff.a.seconds = r->a.seconds;
	r->diff.b.at = r->b.at;
	r->diff.b.seconds = r->b.seconds;
	return 0;
}

static int show(const struct request *r, bool *larger, struct err *err)
{
	struct report_style style = output_style(&r->output);
	struct diff_request asked = r->diff;
	struct diff_result result;
	struct str text = {0};
	int rc;

	asked.pictures = r->output.format->pictures;
	rc = diff_make(&asked, &result, err);

	if (rc)
		return rc;
	r->output.format->diff(&(struct diff_view){&result, r->limit}, &style, &text);
	rc = output_write(&text, r->output.path, err);
	*larger = r->fail >= 0 && diff_growth(&result) > r->fail;
	if (!rc && *larger)
		err_set(err, 0, "B is larger than A by %.3g %%, more than the %.3g %% allowed",
		    diff_growth(&result) * 100, r->fail * 100);
	str_free(&text);
	diff_fini(&result);
	return rc;
}

static int diff_main(int argc, char **argv)
{
	struct request r;
	struct traces a = {0}, b = {0};
	struct err err = {""};
	bool larger = false;
	int rc = parse(argc, argv, &r);

	if (rc)
		return rc < 0 ? CMD_DONE : rc;
	rc = traces_open(&a, argv + optind, 1, &err);
	if (!rc && argc - optind == 2)
		rc = traces_open(&b, argv + optind + 1, 1, &err);
	r.diff.a.set = &a.set;
	r.diff.b.set = b.count ? &b.set : &a.set;
	if (!rc)
		rc = show(&r, &larger, &err);
	traces_close(&b);
	traces_close(&a);
	progress_end();
	return rc || larger ? cmd_error(&err) : CMD_DONE;
}

const struct command cmd_diff = {
    .name = "diff",
    .arguments = "[OPTION...] A B | A --at MOMENT --and MOMENT",
    .summary = "say what changed between two traces, or two moments of one",
    .result = FORMAT_OF_diff,
    .details =
	"A, the older, and B are directories that `whyoom run` made, or files of them.\n"
	"\n"
	"      --at failure|peak|end|SECONDS  the moment (default: the failure of both, else the\n"
	"                                     peak of each space)\n"
	"      --and failure|peak|end|SECONDS the moment of B, if it is another one\n"
	"      --by live|total                bytes that live then (default), or acquired until "
	"then\n"
	"      --per-request                  bytes divided by the number of requests\n"
	"      --fail-if-larger PERCENT%      exit with 1 if B is larger by more than that\n"
	"      --space SPACE                  torch:0, cuda:0, host, ... (default: all)\n"
	"      --pid PID[,PID]                the process, if there are several: of A, and of B\n"
	"      --format FORMATS\n"
	"  -n, --limit N                      the first N lines of a space (default: 20; 0: all)\n"
	"  -o, --output FILE                  write there instead of to stdout\n"
	"  -v, --verbose                      lines that did not change, too, and whole stacks\n"
	"      --native                       show the frames of libc and the interpreter, too\n"
	"  -h, --help                         this help\n",
    .main = diff_main,
};
