/*
 * detach.c - `whyoom detach`: ends what `whyoom attach` began.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/session.h"
#include "cmd/cmd.h"
#include "util/text/fmt.h"

static int detach_main(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	struct attach_done done = {0};
	struct err err = {""};
	struct fmt pause;
	char *end;
	long pid;
	int opt;

	while ((opt = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (opt != 'h')
			return cmd_stray(&cmd_detach, opt, argv[optind - 1]);
		cmd_help(&cmd_detach, stdout);
		return CMD_DONE;
	}
	if (optind + 1 != argc)
		return cmd_usage(&cmd_detach, "give the id of one process that is attached to");
	pid = strtol(argv[optind], &end, 10);
	if (*end || end == argv[optind] || pid <= 0 || pid > INT_MAX)
		return cmd_usage(&cmd_detach, "'%s' is no process id", argv[optind]);
	if (session_end((pid_t)pid, &done, &err))
		return cmd_error(&err);
	printf("%ld: recorded no more; thread %d was paused for %s\n", pid, (int)done.thread,
	    fmt_duration(&pause, done.pause_ns));
	return CMD_DONE;
}

const struct command cmd_detach = {
    .name = "detach",
    .arguments = "[OPTION...] PID",
    .summary = "end what attach began",
    .details = "Ends the recording of a process that `whyoom attach` began, and its trace. The "
	       "library\nstays in the process and does nothing.\n\n"
	       "  -h, --help             this help\n",
    .main = detach_main,
};
