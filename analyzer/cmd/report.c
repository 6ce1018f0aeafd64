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
#include "cmd/output.h"
#include "cmd/run_untraced.h"
#include "cmd/traces.h"
#include "report/report.h"
#include "util/progress.h"
#include "verdict/verdict.h"

enum { OPT_FORMAT = 256, OPT_NATIVE };

static const struct option options[] = {
    {"format", required_argument, NULL, OPT_FORMAT},
    {"output", required_argument, NULL, 'o'},
    {"native", no_argument, NULL, OPT_NATIVE},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int report_main(int argc, char **argv)
{
	const char *path = NULL;
	bool json = false, verbose = false, native = false;
	struct traces traces = {0};
	struct verdict_result result;
	struct report_style style;
	struct str text = {0}, beyond = {0};
	struct err err = {""};
	int rc, opt, status = CMD_ERROR;

	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, ":o:vh", options, NULL)) != -1) {
		switch (opt) {
		case OPT_FORMAT:
			if (strcmp(optarg, "json") != 0 && strcmp(optarg, "text") != 0)
				return cmd_usage(
				    &cmd_report, "--format is text or json, not '%s'", optarg);
			json = strcmp(optarg, "json") == 0;
			break;
		case 'o':
			path = optarg;
			break;
		case OPT_NATIVE:
			native = true;
			break;
		case 'v':
			verbose = true;
			break;
		case 'h':
			cmd_help(&cmd_report, stdout);
			return CMD_DONE;
		case ':':
			return cmd_usage(&cmd_report, "'%s' needs a value", argv[optind - 1]);
		default:
			return cmd_usage(&cmd_report, "unknown option '%s'", argv[optind - 1]);
		}
	}
	if (optind == argc)
		return cmd_usage(&cmd_report, "no trace: name a directory that `whyoom run` made");
	rc = traces_open(&traces, argv + optind, (size_t)(argc - optind), &err);
	if (!rc)
		rc = verdict_of_set(&traces.set, &result, &err);
	progress_end();
	if (rc) {
		traces_close(&traces);
		return cmd_error(&err);
	}
	run_untraced_words(traces.set.supervisor, &beyond);
	if (beyond.length && result.note_count < sizeof(result.notes) / sizeof(*result.notes))
		result.notes[result.note_count++] = str_text(&beyond);
	style = report_style_of(path ? -1 : STDOUT_FILENO);
	style.verbose = verbose;
	style.native = native;
	if (json)
		report_json(&result, &text);
	else
		report_text(&result, &style, &text);
	rc = output_write(&text, path, &err);
	status = rc ? cmd_error(&err) : CMD_DONE;
	str_free(&text);
	str_free(&beyond);
	verdict_fini(&result);
	traces_close(&traces);
	return status;
}

int report_after_run(const char *dir, FILE *out, bool always, struct err *err)
{
	char *one[] = {(char *)dir};
	struct traces traces = {0};
	struct verdict_result result;
	struct str text = {0};
	int rc = traces_open(&traces, one, 1, err);

	if (!rc)
		rc = verdict_of_set(&traces.set, &result, err);
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
	"      --native             also the interpreter's and libc's own frames in stacks\n"
	"  -o, --output FILE        write there instead of to stdout\n"
	"  -v, --verbose            evidence, other causes, what-ifs, exact bytes, whole stacks\n"
	"  -h, --help               this help\n",
    .main = report_main,
};
