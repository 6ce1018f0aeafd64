/*
 * report.c - `whyoom report`: why the program ran out of memory.
 */
#include "cmd/report.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/common/log.h"
#include "cmd/common/moment.h"
#include "cmd/common/output.h"
#include "cmd/common/still_runs.h"
#include "cmd/common/traces.h"
#include "report/html/page.h"
#include "report/report.h"
#include "report/unrecorded.h"
#include "util/num.h"
#include "util/progress.h"
#include "verdict/verdict.h"

enum { OPT_WARM_UP = 256 };

static const struct option options[] = {
    {"log", required_argument, NULL, 'l'},
    {"warm-up", required_argument, NULL, OPT_WARM_UP},
    OUTPUT_STACKS,
    OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

struct request {
	struct output output;
	const char *log; /* NULL: none */
	uint64_t warm_up_ns; /* as prospect_of() */
	const struct moment_request *map; /* the page opens with this map; NULL: it is a report */
};

static int take_warm_up(uint64_t *out)
{
	char *end;
	double seconds = strtod(optarg, &end);

	if (end == optarg || *end || !(seconds >= 0) || isinf(seconds))
		return cmd_usage(&cmd_report, "--warm-up is a number of seconds, not '%s'", optarg);
	*out = num_ns(seconds);
	return 0;
}

static int parse(int argc, char **argv, struct request *r)
{
	int opt, rc = 0;

	*r = (struct request){.output = OUTPUT_DEFAULT, .warm_up_ns = PROSPECT_WARM_UP_NS};
	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT "v", options, NULL)) != -1) {
		if (opt == 'l')
			r->log = optarg;
		else if (opt == OPT_WARM_UP)
			rc = take_warm_up(&r->warm_up_ns);
		else
			rc = output_option(&cmd_report, opt, argv, &r->output);
	}
	return rc ? rc : cmd_wants_trace(&cmd_report, argc);
}

/* Makes the verdict; the log may name processes that the kernel killed. */
static int judge(const struct trace_set *set, struct log *log, const uint64_t *warm_up_ns,
    struct verdict_result *out, struct err *err)
{
	struct verdict_hints hints = {.warm_up_ns = warm_up_ns};

	if (log->read) {
		hints.victims =
		    join_victims(&log->explanation, &log->explanation.arena, &hints.victim_count);
		if (!hints.victims)
			return err_set(err, -ENOMEM, "no memory for the log");
	}
	return verdict_of_set(set, &hints, out, err);
}

static int find_map(const struct verdict_result *result, const struct moment_request *request,
    struct moment_view *point, struct page_map *out, struct err *err)
{
	const struct space *sp = moment_default_space(result->model);
	int rc = moment_point(result->model, request, point, err);

	if (rc)
		return rc;
	*out = (struct page_map){.space = request->space ? request->space
					  : sp		 ? sp->name
							 : "host",
	    .at = point->name[0] ? point->name : point->at,
	    .time_ns = point->time_ns};
	return 0;
}

static int write_report(const struct trace_set *set, struct verdict_result *result, struct log *log,
    const struct request *r, struct err *err)
{
	struct report_view view = {.result = result};
	struct report_style style = output_style(&r->output);
	struct moment_view point; /* holds the name of the map's moment */
	struct page_map map;
	struct page *page = NULL;
	struct str text = {0};
	int rc;

	if (r->output.format->pictures) {
		if (r->map && (rc = find_map(result, r->map, &point, &map, err)))
			return rc;
		rc = page_gather(result, r->map ? NULL : set, r->map ? &map : NULL, &page, err);
		if (rc)
			return rc;
		view.page = page;
	}
	if (log->read) {
		rc = join_arena(&log->explanation, result, err);
		if (rc)
			goto out;
		view.log = &log->explanation;
		view.joined = join_messages(&log->explanation, result, &result->arena);
		if (!view.joined) {
			rc = err_set(err, -ENOMEM, "no memory for the log");
			goto out;
		}
		join_verdict(&log->explanation, view.joined, result);
	}
	if (r->map)
		r->output.format->map(&(struct map_view){.report = &view}, &style, &text);
	else
		r->output.format->report(&view, &style, &text);
	rc = output_write(&text, r->output.path, err);
out:
	page_free(page);
	str_free(&text);
	return rc;
}

static void add_note(struct verdict_result *result, const struct str *text)
{
	if (text->length)
		notes_add(&result->notes, str_text(text));
}

/* Writes a report with notes on what was not recorded, and on what comes next. */
static int write_with_notes(const struct trace_set *set, struct verdict_result *result,
    struct log *log, const struct request *r, struct err *err)
{
	struct str processes = {0}, programs = {0}, next = {0};
	int rc = still_runs_note(result, &next, err);

	if (rc)
		return rc;
	add_note(result, &next);
	unrecorded_processes(set->supervisor, &processes);
	add_note(result, &processes);
	str_puts(&programs, "not recorded: ");
	unrecorded_programs(set->images, set->count, &programs);
	if (programs.length > strlen("not recorded: "))
		add_note(result, &programs);
	rc = write_report(set, result, log, r, err);
	str_free(&programs);
	str_free(&processes);
	str_free(&next);
	return rc;
}

static int show(const struct trace_set *set, const void *request, struct err *err)
{
	const struct request *r = request;
	struct verdict_result result;
	struct log log = {0};
	int rc = r->log ? log_open(&log, r->log, err) : 0;

	if (!rc)
		rc = judge(set, &log, &r->warm_up_ns, &result, err);
	progress_end();
	if (!rc) {
		rc = write_with_notes(set, &result, &log, r, err);
		verdict_fini(&result);
	}
	log_close(&log);
	return rc;
}

static int report_main(int argc, char **argv)
{
	struct request r;

	return traces_show(parse(argc, argv, &r), argc, argv, show, &r);
}

int report_map(const struct trace_set *set, const struct moment_request *moment,
    const struct output *output, struct err *err)
{
	struct request r = {.output = *output, .warm_up_ns = PROSPECT_WARM_UP_NS, .map = moment};
	struct trace_set one = *set;
	struct trace *t;
	int rc;

	if (!moment->pid)
		return show(set, &r, err);
	rc = moment_process(set, moment->pid, &t, err);
	one.images = &t;
	one.count = 1;
	return rc ? rc : show(&one, &r, err);
}

static struct request page_request(const char *path)
{
	return (struct request){
	    .output = {.format = &format_html, .path = path}, .warm_up_ns = PROSPECT_WARM_UP_NS};
}

int report_page(const struct trace_set *set, const char *path, struct err *err)
{
	struct request r = page_request(path);

	return show(set, &r, err);
}

/* Prints the verdict in brief, and writes the page where one is wanted. */
static int tell_after_run(const struct trace_set *set, struct verdict_result *result,
    const char *dir, const struct report_end *end, struct err *err)
{
	struct request r = page_request(end->page);
	struct log none = {0};
	struct str text = {0};
	FILE *out = end->out;
	int rc;

	if (end->last_word)
		report_last_word(result, dir, end->last_word);
	if (out) {
		struct report_style style = report_style_of(fileno(out));

		report_brief(result, dir, &style, &text);
		fputs(str_text(&text), out);
		str_free(&text);
	}
	if (!end->page)
		return 0;
	rc = write_with_notes(set, result, &none, &r, err);
	progress_end();
	if (!rc && out) {
		fputs("  Page: ", out);
		str_safe(&text, end->page);
		fprintf(out, "%s\n", str_text(&text));
		str_free(&text);
	}
	return rc;
}

int report_after_run(const char *dir, const struct report_end *end, struct err *err)
{
	char *one[] = {(char *)dir};
	struct traces traces = {0};
	struct verdict_result result;
	int rc = traces_open(&traces, one, 1, err);

	if (!rc)
		rc = verdict_of_set(&traces.set, NULL, &result, err);
	progress_end();
	if (rc) {
		traces_close(&traces);
		return rc;
	}
	if (end->always || result.failure.kind != FAILURE_NONE)
		rc = tell_after_run(&traces.set, &result, dir, end, err);
	verdict_fini(&result);
	traces_close(&traces);
	return rc;
}

const struct command cmd_report = {
    .name = "report",
    .arguments = "[OPTION...] TRACE...",
    .summary = "say why the program ran out of memory, what held it and what to change",
    .result = FORMAT_OF_report,
    .details = CMD_TRACE
    "\n"
    "      --format FORMATS\n"
    "      --log FILE           also explain this log of the same run ('-': stdin); the kernel's\n"
    "                           log works, too\n"
    "      --warm-up SECONDS    of a process that still runs and is younger, forecast nothing\n"
    "                           (default: 60)\n"
    "      --native             show the frames of libc and the interpreter in stacks\n"
    "  -o, --output FILE        write there instead of to stdout\n"
    "  -v, --verbose            add evidence, other causes, what-ifs, exact bytes, whole stacks\n"
    "  -h, --help               this help\n",
    .main = report_main,
};
