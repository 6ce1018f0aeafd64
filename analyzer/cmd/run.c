/*
 * run.c - `whyoom run`: starts a program with the recording library in front, watches it from
 * outside, and exits as it did.
 */
#include "cmd/cmd.h"

static int run_main(int argc, char **argv)
{
	if (argc < 2)
		return cmd_usage(&cmd_run, "no program to run");
	return CMD_ERROR;
}

const struct command cmd_run = {
    .name = "run",
    .arguments = "[OPTION...] [--] PROGRAM [ARGUMENT...]",
    .summary = "run a program, and say why when its memory runs out",
    .details = "",
    .main = run_main,
};
