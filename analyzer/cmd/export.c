/*
 * export.c - `whyoom export`: one process of a trace in another program's format.
 */
#include "export/export.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/moment.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "cmd/common/whole_run.h"
#include "util/text/note.h"
#include "verdict/verdict.h"

enum { OPT_AT = 256, OPT_SPACE, OPT_PID, OPT_MEASURE, OPT_EVENTS, OPT_HISTORY, OPT_GZIP, OPT_BASE };

static const struct option options[] = {
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"at", required_argument, NULL, OPT_AT},
    {"space", required_argument, NULL, OPT_SPACE},
    {"pid", required_argument, NULL, OPT_PID},
    {"measure", required_argument, NULL, OPT_MEASURE},
    {"events", required_argument, NULL, OPT_EVENTS},
    {"base", required_argument, NULL, OPT_BASE},
    {"history", no_argument, NULL, OPT_HISTORY},
    {"gzip", no_argument, NULL, OPT_GZIP},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
	const struct exporter *to;
	struct moment_request moment;
	struct export_options options;
	const char *path; /* NULL: stdout */
	char *base; /* the trace of the difference; NULL: none */
	bool events; /* the user chose some */
};

static int take_format(struct request *r)
{
	struct str names = {0};

	r->to = export_find(optarg);
	if (r->to)
		return 0;
	export_names(", ", &names);
	cmd_usage(&cmd_export, "--format is one of %s, not '%s'", str_text(&names), optarg);
	str_free(&names);
	return CMD_USAGE;
}

static int take_events(struct request *r)
{
	r->events = true;
	r->options.events = strcmp(optarg, "none") != 0;
	r->options.last_events = 0;
	if (!r->options.events || strcmp(optarg, "all") == 0)
		return 0;
	return cmd_number(&cmd_export, "--events", 1, &r->options.last_events);
}

static int take_option(struct request *r, int opt, char *const *argv)
{
	switch (opt) {
	case 'f':
		return take_format(r);
	case 'o':
		r->path = strcmp(optarg, "-") ? optarg : NULL;
		return 0;
	case OPT_AT:
		return moment_parse(optarg, &r->moment)
			   ? 0
			   : cmd_usage(&cmd_export, MOMENT_USAGE, optarg);
	case OPT_SPACE:
		r->moment.space = optarg;
		return 0;
	case OPT_PID:
		return cmd_number(&cmd_export, "--pid", 1, &r->moment.pid);
	case OPT_MEASURE:
		r->options.measure = export_measure_find(optarg);
		if (r->options.measure != MEASURES)
			return 0;
		return cmd_usage(&cmd_export,
		    "--measure is live, peak, total, count or temporary, not '%s'", optarg);
	case OPT_EVENTS:
		return take_events(r);
	case OPT_BASE:
		r->base = optarg;
		r->options.difference = true;
		return 0;
	case OPT_HISTORY:
		r->options.history = true;
		return 0;
	case OPT_GZIP:
		r->options.gzip = true;
		return 0;
	case 'h':
		cmd_help(&cmd_export, stdout);
		return -1;
	default:
		return cmd_stray(&cmd_export, opt, argv[optind - 1]);
	}
}

static bool is_all(const char *space)
{
	return strcmp(space, "all") == 0;
}

/* An option that the format ignores would mislead. */
static int check_options(const struct request *r)
{
	const struct exporter *to = r->to;

	if (r->options.measure != MEASURES && !to->one_measure && !to->by_measure)
		return cmd_usage(&cmd_export, "%s holds all measures: no --measure", to->name);
	if (!(to->needs & EXPORT_EVENTS) && (!r->options.events || r->options.last_events))
		return cmd_usage(&cmd_export, "%s holds no events: no --events", to->name);
	if (r->base && !to->can_base)
		return cmd_usage(&cmd_export, "%s has no --base", to->name);
	if (r->options.history && !to->can_history)
		return cmd_usage(&cmd_export, "%s has no --history", to->name);
	if (r->options.gzip && !to->can_gzip)
		return cmd_usage(&cmd_export, "%s has no --gzip", to->name);
	if (to->one_space && r->moment.space && is_all(r->moment.space))
		return cmd_usage(&cmd_export, "%s holds one space", to->name);
	if (to->to_file && !r->path)
		return cmd_usage(&cmd_export, "%s needs a file: -o FILE", to->name);
	if ((to->binary || r->options.gzip) && !r->path && isatty(STDOUT_FILENO))
		return cmd_usage(&cmd_export,
		    "%s is no text for a terminal: use -o FILE, or send it to a pipe", to->name);
	return 0;
}

static int parse(int argc, char **argv, struct request *r)
{
	int opt, rc = 0;

	*r = (struct request){
	    .to = export_default(), .options = {.measure = MEASURES, .events = true}};
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, ":f:o:h", options, NULL)) != -1)
		rc = take_option(r, opt, argv);
	if (!rc)
		rc = check_options(r);
	return rc ? rc : cmd_wants_trace(&cmd_export, argc);
}

/* The process, and what has been read of it. */
struct subject {
	struct trace *trace;
	struct whole_run read; /* the whole run */
	struct verdict_result verdict;
	bool judged;
};

/* A verdict is about one process of a set: if the user chose another, about that one alone. */
static int judge(const struct trace_set *set, struct subject *s, struct err *err)
{
	struct trace_set one = *set;
	int rc = verdict_of_set(set, NULL, &s->verdict, err);

	if (!rc && s->verdict.trace != s->trace) {
		verdict_fini(&s->verdict);
		one.images = &s->trace;
		one.count = 1;
		rc = verdict_of_set(&one, NULL, &s->verdict, err);
	}
	s->judged = rc == 0;
	return rc;
}

/* Gives one space, and says in *at which moment that was. `called`, unless it is NULL, is the
 * moment's name. */
static int export_one(struct export *x, const struct subject *s,
    const struct moment_request *request, const char *called, struct space_at *at, struct err *err)
{
	struct export_space space;
	int rc = moment_space(s->trace, s->read.all, request, at, err);

	if (rc)
		return rc;
	space = (struct export_space){.index = export_space_index(x, request->space),
	    .name = request->space,
	    .model = at->model,
	    .moment = at->moment,
	    .at = called ? called : at->at,
	    .time_ns = at->time_ns};
	rc = export_space(x, &space, err);
	moment_fini(&at->view);
	return rc;
}

/* Gives moments before those that export_one() gives of the spaces that are asked for: of all, or
 * of request->space. */
static int export_earlier(struct export *x, const struct subject *s,
    const struct moment_request *request, bool all, struct err *err)
{
	struct moment_request one = *request;
	uint64_t until_ns[SPACES_MAX + 1] = {0};
	struct moment_view view;
	struct err unused;

	if (!x->to->moments)
		return 0;
	for (uint32_t i = 0; i < x->name_count; i++) {
		one.space = x->names[i];
		/* A space without such a moment keeps its 0. */
		if ((all || strcmp(one.space, request->space) == 0) &&
		    !moment_point(s->read.all, &one, &view, &unused))
			until_ns[i] = view.time_ns;
	}
	return export_moments(x, until_ns, err);
}

/* All spaces, first the one that matters most. If its moment is a failure, the others are shown as
 * they were at that time: each may have failures of its own. */
static int export_all(
    struct export *x, const struct subject *s, const struct request *r, struct err *err)
{
	const struct space *most = moment_default_space(s->read.all);
	struct moment_request one = r->moment;
	struct moment_request others;
	struct moment_view point;
	struct space_at beside;
	const char *called = NULL;
	uint32_t first;
	int rc;

	one.space = most ? most->name : "host";
	first = export_space_index(x, one.space);
	rc = moment_point(s->read.all, &one, &point, err);
	if (rc)
		return rc;
	others = one;
	if (point.at && strcmp(point.at, "failure") == 0) {
		called = point.at;
		others.at = NULL;
		others.seconds = ((double)point.time_ns + 0.5) / 1e9;
	}
	rc = export_earlier(x, s, &others, true, err);
	if (!rc)
		rc = export_one(x, s, &one, NULL, &beside, err);
	for (uint32_t i = 0; !rc && i < x->name_count; i++) {
		others.space = x->names[i];
		if (i != first)
			rc = export_one(x, s, &others, called, &beside, err);
		/* It had no memory yet, or nothing happened. */
		rc = rc == -ENOENT ? 0 : rc;
	}
	return rc;
}

static int export_spaces(
    struct export *x, const struct subject *s, const struct request *r, struct err *err)
{
	const struct space *most = moment_default_space(s->read.all);
	struct moment_request one = r->moment;
	struct space_at at;
	int rc;

	if (!(x->to->needs & EXPORT_SUMS))
		return 0;
	if (one.space ? is_all(one.space) : !x->to->one_space && !x->to->adds_spaces)
		return export_all(x, s, r, err);
	if (!one.space)
		one.space = most ? most->name : "host";
	rc = export_earlier(x, s, &one, false, err);
	return rc ? rc : export_one(x, s, &one, NULL, &at, err);
}

/* The options, with what follows from the trace. */
static int find_options(const struct subject *s, const struct request *r, struct moment_view *point,
    struct export_options *out, struct err *err)
{
	struct moment_request request = r->moment;
	int rc;

	*out = r->options;
	out->space = r->moment.space && !is_all(r->moment.space) ? r->moment.space : NULL;
	if (!r->events)
		out->last_events = r->to->last_events;
	if (!r->to->devices)
		return 0;
	request.space = out->space;
	rc = moment_point(s->read.all, &request, point, err);
	out->until = (struct export_until){
	    point->others, point->until_ns, point->at ? point->at : point->name};
	return rc;
}

/* Gives the sums of the trace that a difference starts from. */
static int export_base(struct export *x, const struct export *of, const struct subject *s,
    const struct request *r, struct err *err)
{
	int rc = export_begin(x, of->to, &of->options, of->out, NULL, s->read.all, err);

	x->temporary = s->read.temporary;
	return rc ? rc : export_spaces(x, s, r, err);
}

static int write_to(const struct output_stream *to, const struct subject *s,
    const struct subject *from, const struct request *r, struct err *err)
{
	struct export_options chosen;
	struct moment_view point;
	struct export x = {0}, base = {0};
	struct sink sink;
	int rc = sink_init(&sink, to->fd, r->to->gzip || r->options.gzip);

	if (rc)
		err_set(err, rc, "no memory for the output");
	if (!rc)
		rc = find_options(s, r, &point, &chosen, err);
	if (!rc)
		rc = export_begin(&x, r->to, &chosen, &sink, to->path, s->read.all, err);
	x.temporary = s->read.temporary;
	if (!rc && from)
		rc = export_base(&base, &x, from, r, err);
	x.base = from ? &base : NULL;
	if (!rc)
		rc = export_spaces(&x, s, r, err);
	if (!rc)
		rc = export_events(&x, err);
	if (!rc && s->judged)
		rc = export_verdict(&x, &s->verdict, err);
	if (!rc)
		rc = export_end(&x, err);
	export_fini(&x);
	export_fini(&base);
	sink_fini(&sink);
	return rc;
}

static int write_out(
    const struct subject *s, const struct subject *from, const struct request *r, struct err *err)
{
	struct output_stream to;
	int rc = output_begin(&to, r->path, err);

	if (rc)
		return rc;
	rc = write_to(&to, s, from, r, err);
	if (!rc)
		return output_commit(&to, err);
	output_abort(&to);
	return rc;
}

static int read_subject(const struct trace_set *set, uint64_t pid, const struct request *r,
    struct subject *s, struct err *err)
{
	int rc = moment_process(set, pid, &s->trace, err);

	if (!rc && (r->to->needs & EXPORT_VERDICT))
		rc = judge(set, s, err);
	if (!rc)
		rc = whole_run_read(s->trace, export_wants_temporary(r->to, &r->options),
		    r->moment.seconds, &s->read, err);
	if (!rc && trace_facts(s->trace)->damage.count)
		note("%s is damaged: the export holds what could be read; `whyoom check` lists the "
		     "damage",
		    trace_facts(s->trace)->path);
	return rc;
}

static void subject_fini(struct subject *s)
{
	whole_run_fini(&s->read);
	if (s->judged)
		verdict_fini(&s->verdict);
}

/* The same space of both: that of the trace, if the user named none. */
static int show_difference(const struct subject *s, const struct request *asked, struct err *err)
{
	const struct space *most = moment_default_space(s->read.all);
	struct request r = *asked;
	struct subject from = {0};
	struct traces traces = {0};
	int rc = traces_open(&traces, &r.base, 1, err);

	if (!r.moment.space)
		r.moment.space = most ? most->name : "host";
	if (!rc)
		rc = read_subject(&traces.set, 0, &r, &from, err);
	if (!rc)
		rc = write_out(s, &from, &r, err);
	subject_fini(&from);
	traces_close(&traces);
	return rc;
}

static int show(const struct trace_set *set, const void *request, struct err *err)
{
	const struct request *r = request;
	struct subject s = {0};
	int rc = read_subject(set, r->moment.pid, r, &s, err);

	if (!rc)
		rc = r->base ? show_difference(&s, r, err) : write_out(&s, NULL, r, err);
	subject_fini(&s);
	return rc;
}

static int export_main(int argc, char **argv)
{
	struct request r;

	return traces_show(parse(argc, argv, &r), argc, argv, show, &r);
}

const struct command cmd_export = {
    .name = "export",
    .arguments = "[OPTION...] TRACE...",
    .summary = "write the trace in another program's format",
    .details = CMD_TRACE
    "\n"
    "  -f, --format FORMAT                what to write (default: folded); see below\n"
    "  -o, --output FILE                  write there instead of to stdout\n"
    "      --at failure|peak|end|SECONDS  the moment (default: the failure, else the peak)\n"
    "      --space SPACE                  host, torch:0, cuda:0, pool:0, ... or all (default:\n"
    "                                     all where the format has room, else what failed)\n"
    "      --measure MEASURE              live, peak, total, count or temporary (default: all\n"
    "                                     where the format has room, else live)\n"
    "      --events all|none|N            the events, or the last N (default: all;\n"
    "                                     torch-snapshot: the last 200000 of the devices)\n"
    "      --history                      values over time, too\n"
    "      --base TRACE                   the difference from another trace, in folded\n"
    "      --gzip                         compress it\n"
    "      --pid PID                      the process, if there are several\n"
    "  -h, --help                         this help\n",
    .more = export_help,
    .main = export_main,
};
