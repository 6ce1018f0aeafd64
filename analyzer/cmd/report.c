/*
 * report.c - `whyoom report`: why did it die?
 */
#include "cmd/report.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/log.h"
#include "cmd/common/output.h"
#include "cmd/common/traces.h"
#include "cmd/run/untraced.h"
#include "explain/join/join_arena.h"
#include "report/report.h"
#include "util/progress.h"
#include "verdict/verdict.h"

enum { OPT_FORMAT = 256, OPT_LOG, OPT_NATIVE };

static const struct option options[] = {
    {"format", required_argument, NULL, OPT_FORMAT},
    {"log", required_argument, NULL, OPT_LOG},
    {"output", required_argument, NULL, 'o'},
    {"native", no_argument, NULL, OPT_NATIVE},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
	const char *output, *log; /* NULL: stdout, none */
	bool json, verbose, native;
};

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, struct request *r)
{
	int opt;

	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":o:vh", options, NULL)) != -1) {
		switch (opt) {
		case OPT_FORMAT:
			if (cmd_format(&cmd_report, optarg, &r->json))
				return CMD_USAGE;
			break;
		case OPT_LOG:
			r->log = optarg;
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
			cmd_help(&cmd_report, stdout);
			return CMD_DONE;
		default:
			return cmd_stray(&cmd_report, opt, argv[optind - 1]);
		}
	}
	if (optind == argc)
		return cmd_usage(&cmd_report, "no trace: name a directory that `whyoom run` made");
	return -1;
}

/* The log that was named, and what it is read with. */
struct log {
	struct knowledge *knowledge;
	struct explanation explanation;
	bool read;
};

static int open_log(struct log *log, const char *path, struct err *err)
{
	int rc;

	log->knowledge = knowledge_open();
	if (!log->knowledge)
		return err_set(err, -ENOMEM, "no memory for the knowledge files");
	rc = log_read(path, log->knowledge, &log->explanation, err);
	log->read = rc == 0;
	return rc;
}

static void close_log(struct log *log)
{
	if (log->read)
		explain_fini(&log->explanation);
	knowledge_free(log->knowledge);
}

/* The verdict, with what the log knows of kills. */
static int judge(
    const struct trace_set *set, struct log *log, struct verdict_result *out, struct err *err)
{
	struct verdict_hints hints = {0};

	if (log->read) {
		hints.victims =
		    join_victims(&log->explanation, &log->explanation.arena, &hints.victim_count);
		if (!hints.victims)
			return err_set(err, -ENOMEM, "no memory for the log");
	}
	return verdict_of_set(set, &hints, out, err);
}

static int write_report(
    struct verdict_result *result, struct log *log, const struct request *r, struct err *err)
{
	struct report_log joined = {.explanation = &log->explanation};
	struct report_style style = report_style_of(r->output ? -1 : STDOUT_FILENO);
	struct str text = {0};
	int rc;

	if (log->read) {
		rc = join_arena(&log->explanation, result, err);
		if (rc)
			return rc;
		joined.of = join_messages(&log->explanation, result, &result->arena);
		if (!joined.of)
			return err_set(err, -ENOMEM, "no memory for the log");
		join_verdict(&log->explanation, joined.of, result);
	}
	style.verbose = r->verbose;
	style.native = r->native;
	if (r->json)
		report_json(result, log->read ? &joined : NULL, &text);
	else
		report_text(result, log->read ? &joined : NULL, &style, &text);
	rc = output_write(&text, r->output, err);
	str_free(&text);
	return rc;
}

static int report_main(int argc, char **argv)
{
	struct request r = {0};
	struct traces traces = {0};
	struct verdict_result result;
	struct log log = {0};
	struct str beyond = {0}, unrecorded = {0};
	struct err err = {""};
	int status = parse(argc, argv, &r), rc = 0;

	if (status >= 0)
		return status;
	if (r.log)
		rc = open_log(&log, r.log, &err);
	if (!rc)
		rc = traces_open(&traces, argv + optind, (size_t)(argc - optind), &err);
	if (rc)
		goto out;
	rc = judge(&traces.set, &log, &result, &err);
	progress_end();
	if (rc)
		goto close;
	run_untraced_words(traces.set.supervisor, &beyond);
	if (beyond.length)
		notes_add(&result.notes, str_text(&beyond));
	str_puts(&unrecorded, "not recorded: ");
	run_untraced_programs(traces.set.images, traces.set.count, &unrecorded);
	if (unrecorded.length > strlen("not recorded: "))
		notes_add(&result.notes, str_text(&unrecorded));
	rc = write_report(&result, &log, &r, &err);
	str_free(&unrecorded);
	str_free(&beyond);
	verdict_fini(&result);
close:
	traces_close(&traces);
out:
	close_log(&log);
	return rc ? cmd_error(&err) : CMD_DONE;
}

int report_after_run(const char *dir, FILE *out, bool always, struct err *err)
{
	char *one[] = {(char *)dir};
	struct traces traces = {0};
	struct verdict_result result;
	struct str text = {0};
	int rc = traces_open(&traces, one, 1, err);

	if (!rc)
		rc = verdict_of_set(&traces.set, NULL, &result, err);
	progress_end();
	if (rc) {
		traces_close(&traces);
		return rc;
	}
	if (always || result.failure.kind != FAILURE_NONE) {
		struct report_style style = report_style_of(fileno(out));

		report_brief(&result, dir, &style, &text);
		fputs(str_text(&text), out);
	}
	str_free(&text);
	verdict_fini(&result);
	traces_close(&traces);
	return 0;
}

const struct command cmd_report = {
    .name = "report",
    .arguments = "[OPTION...] TRACE...",
    .summary = "say why it ran out: verdict, where the memory was, who, what to change",
    .details =
	"TRACE is a directory that `whyoom run` made, or one file of it.\n\n"
	"      --format text|json   for a person (default), or schema 1 for a program\n"
	"      --log FILE           a log of the same run ('-': stdin), also the kernel's: joined\n"
	"                           with what was recorded\n"
	"      --native             also the interpreter's and libc's own frames in stacks\n"
	"  -o, --output FILE        write there instead of to stdout\n"
	"  -v, --verbose            evidence, other causes, what-ifs, exact bytes, whole stacks\n"
	"  -h, --help               this help\n",
    .main = report_main,
};
