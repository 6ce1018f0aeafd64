/*
 * explain.c - `whyoom explain`: what the out-of-memory messages of a log mean, without a trace.
 */
#include "explain/explain.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/log.h"
#include "cmd/common/output.h"

static const struct option options[] = {
    OUTPUT_VERBOSE,
    OUTPUT_OPTIONS,
    {NULL, 0, NULL, 0},
};

static int parse(int argc, char **argv, struct output *output, const char **log)
{
	int opt, rc = 0;

	optind = 0;
	opterr = 0;
	while (!rc && (opt = getopt_long(argc, argv, OUTPUT_SHORT "v", options, NULL)) != -1)
		rc = output_option(&cmd_explain, opt, argv, output);
	if (rc)
		return rc;
	if (argc - optind > 1)
		return cmd_usage(&cmd_explain, "one FILE at a time");
	if (optind < argc)
		*log = argv[optind];
	else if (isatty(STDIN_FILENO))
		return cmd_usage(&cmd_explain, "no FILE, and stdin is a terminal ('-' reads it)");
	return 0;
}

static int explain_main(int argc, char **argv)
{
	struct output output = OUTPUT_DEFAULT;
	const char *path = NULL; /* NULL: stdin */
	struct report_style style;
	struct str text = {0};
	struct log log;
	struct err err = {""};
	int rc = parse(argc, argv, &output, &path);

	if (rc)
		return rc < 0 ? CMD_DONE : rc;
	rc = log_open(&log, path, &err);
	if (!rc) {
		style = output_style(&output);
		output.format->explain(&log.explanation, &style, &text);
		rc = output_write(&text, output.path, &err);
		str_free(&text);
	}
	log_close(&log);
	return rc ? cmd_error(&err) : CMD_DONE;
}

const struct command cmd_explain = {
    .name = "explain",
    .arguments = "[OPTION...] [FILE]",
    .summary = "explain the out-of-memory messages of a log, without a trace",
    .result = FORMAT_OF_explain,
    .details =
	"FILE is a log or the text of an exception; without it, or with '-', stdin is read.\n\n"
	"      --format FORMATS\n"
	"  -o, --output FILE        write there instead of to stdout\n"
	"  -v, --verbose            show the text and the numbers of every message\n"
	"  -h, --help               this help\n",
    .main = explain_main,
};
