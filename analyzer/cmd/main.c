/*
 * main.c - the command table, and what is common to all commands: help, version, and an error if
 * stdout did not take the whole result.
 */
#include "cmd/cmd.h"
#include "cmd/common/limit.h"

#include <errno.h>
#include <string.h>

#include "util/memory.h"
#include "util/progress.h"
#include "util/unfinished.h"

const struct command *const cmd_table[] = {
#define COMMAND(name) &cmd_##name,
#include "cmd/commands.def"
#undef COMMAND
    NULL,
};

static const struct command *find(const char *name)
{
	for (size_t i = 0; cmd_table[i]; i++)
		if (!strcmp(cmd_table[i]->name, name))
			return cmd_table[i];
	return NULL;
}

static int dispatch(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *command;
	bool help = argc > 2 && !strcmp(argv[2], "--help");

	if (!name) {
		cmd_help(NULL, stderr);
		return CMD_USAGE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		if (argc == 2) {
			cmd_help(NULL, stdout);
			return CMD_DONE;
		}
		name = argv[2];
		help = true;
	} else if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("whyoom " WHYOOM_VERSION);
		return CMD_DONE;
	} else if (name[0] == '-') {
		return cmd_usage(NULL, "unknown option '%s'", name);
	}
	command = find(name);
	if (!command) {
		if (cmd_suggest(name))
			return cmd_usage(NULL, "there is no command '%s'; did you mean '%s'?", name,
			    cmd_suggest(name));
		return cmd_usage(NULL, "there is no command '%s'", name);
	}
	if (help) {
		cmd_help(command, stdout);
		return CMD_DONE;
	}
	if (!command->starts) {
		if (limit_take(&argc, argv))
			return CMD_USAGE;
		unfinished_watch();
		progress_watch();
	}
	return command->main(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	int status;

	memory_start();
	status = dispatch(argc, argv);

	/* A report cut short by a full disk must not look complete. */
	errno = 0;
	if ((fflush(stdout) || ferror(stdout)) && status == CMD_DONE && errno != EPIPE) {
		fprintf(stderr, "whyoom: cannot write the output: %s\n",
		    errno ? strerror(errno) : "write error");
		status = CMD_ERROR;
	}
	return status;
}
