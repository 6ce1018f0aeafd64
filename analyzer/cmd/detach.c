/*
 * detach.c - `whyoom detach`: ends what `whyoom attach` began.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>

#include "attach/session.h"
#include "cmd/cmd.h"
#include "cmd/common/output.h"

/* 0; CMD_USAGE; -1: help was asked for. */
static int parse(int argc, char **argv, struct output *output, pid_t *pid)
{
	static const struct option options[] = {{"format", required_argument, NULL, OUTPUT_FORMAT},
	    {"help", no_argument, NULL, 'h'}, {0}};
	char *end;
	long n;
	int opt, rc;

	while ((opt = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		rc = output_option(&cmd_detach, opt, argv, output);
		if (rc)
			return rc;
	}
	if (optind + 1 != argc)
		return cmd_usage(&cmd_detach, "give the id of one process that is attached to");
	n = strtol(argv[optind], &end, 10);
	if (*end || end == argv[optind] || n <= 0 || n > INT_MAX)
		return cmd_usage(&cmd_detach, "'%s' is no process id", argv[optind]);
	*pid = (pid_t)n;
	return 0;
}

static int detach_main(int argc, char **argv)
{
	struct output output = OUTPUT_DEFAULT;
	struct attach_done done = {0};
	struct attached_view view;
	struct report_style style;
	struct str text = {0};
	struct target target;
	struct err err = {""};
	pid_t pid = 0;
	int rc = parse(argc, argv, &output, &pid);

	if (rc)
		return rc < 0 ? CMD_DONE : rc;
	rc = target_read(pid, &target, &err);
	if (!rc)
		rc = session_end(pid, &done, &err);
	if (!rc) {
		view = (struct attached_view){.pid = (int)pid,
		    .name = target.name,
		    .thread = (int)done.thread,
		    .pause_ns = done.pause_ns,
		    .asleep = done.how == SAFE_POINT_ASLEEP,
		    .own_thread = done.apart};
		style = output_style(&output);
		output.format->attach(&view, &style, &text);
		rc = output_write(&text, NULL, &err);
	}
	str_free(&text);
	target_fini(&target);
	return rc ? cmd_error(&err) : CMD_DONE;
}

const struct command cmd_detach = {
    .name = "detach",
    .arguments = "[OPTION...] PID",
    .summary = "end what attach began",
    .result = FORMAT_OF_attach,
    .details = "Ends the recording of a process that `whyoom attach` began, and its trace. The "
	       "library\nstays in the process and does nothing.\n\n"
	       "      --format FORMATS\n"
	       "  -h, --help             this help\n",
    .main = detach_main,
};
