/*
 * explain.c - `whyoom explain`: what a log's out-of-memory messages mean, when there is no trace.
 */
#include "explain/explain.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/common/log.h"
#include "cmd/common/output.h"
#include "report/explain.h"

enum { OPT_FORMAT = 256 };

static const struct option options[] = {
    {"format", required_argument, NULL, OPT_FORMAT},
    {"output", required_argument, NULL, 'o'},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct request {
	const char *log, *output; /* NULL: stdin, stdout */
	bool json, verbose;
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
			if (cmd_format(&cmd_explain, optarg, &r->json))
				return CMD_USAGE;
			break;
		case 'o':
			r->output = optarg;
			break;
		case 'v':
			r->verbose = true;
			break;
		case 'h':
			cmd_help(&cmd_explain, stdout);
			return CMD_DONE;
		default:
			return cmd_stray(&cmd_explain, opt, argv[optind - 1]);
		}
	}
	if (argc - optind > 1)
		return cmd_usage(&cmd_explain, "one FILE at a time");
	if (optind < argc)
		r->log = argv[optind];
	else if (isatty(STDIN_FILENO))
		return cmd_usage(&cmd_explain, "no FILE, and stdin is a terminal ('-' reads it)");
	return -1;
}

static int explain_main(int argc, char **argv)
{
	struct request r = {0};
	struct explanation explanation;
	struct knowledge *knowledge;
	struct report_style style;
	struct str text = {0};
	struct err err = {""};
	int status = parse(argc, argv, &r);

	if (status >= 0)
		return status;
	knowledge = knowledge_open();
	if (!knowledge) {
		err_set(&err, -ENOMEM, "no memory for the knowledge files");
		return cmd_error(&err);
	}
	if (log_read(r.log, knowledge, &explanation, &err)) {
		knowledge_free(knowledge);
		return cmd_error(&err);
	}
	style = report_style_of(r.output ? -1 : STDOUT_FILENO);
	style.verbose = r.verbose;
	if (r.json)
		report_explain_json(&explanation, &text);
	else
		report_explain_text(&explanation, &style, &text);
	status = output_write(&text, r.output, &err) ? cmd_error(&err) : CMD_DONE;
	str_free(&text);
	explain_fini(&explanation);
	knowledge_free(knowledge);
	return status;
}

const struct command cmd_explain = {
    .name = "explain",
    .arguments = "[OPTION...] [FILE]",
    .summary = "say what the out-of-memory messages of a log mean, when there is no trace",
    .details =
	"FILE is a log or the text of an exception; without it, or as '-', stdin is read.\n\n"
	"      --format text|json   for a person (default), or for a program\n"
	"  -o, --output FILE        write there instead of to stdout\n"
	"  -v, --verbose            every message with its text and its numbers\n"
	"  -h, --help               this help\n",
    .main = explain_main,
};
