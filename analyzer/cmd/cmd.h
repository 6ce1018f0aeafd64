/*
 * cmd.h - what a subcommand is, and what all of them say the same way.
 *
 * A subcommand is a row in commands.def and a file that defines `const struct command cmd_X`. Its
 * main() gets argv from its own name on (argv[0] is "X") and returns the exit status. It writes
 * results to stdout and everything else to stderr; main.c checks that stdout took all of it.
 */
#ifndef ANALYZER_CMD_CMD_H
#define ANALYZER_CMD_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/format.h"
#include "util/text/err.h"

enum cmd_status {
	CMD_DONE = 0,
	CMD_ERROR = 1, /* in the input or the system */
	CMD_USAGE = 2, /* wrong usage */
};

struct command {
	const char *name;
	const char *arguments; /* after "whyoom NAME ", as in "TRACE... [OPTION...]" */
	const char *summary; /* one line for `whyoom --help`, lower case, no full stop */
	/* The rest of `whyoom NAME --help`: options, a line each, "\n" at the end. FORMATS stands
	 * for the formats that can write the result. */
	const char *details;
	void (*more)(FILE *out); /* prints lines made from a table, after details; or NULL */
	enum format_result result; /* what --format applies to */
	int (*main)(int argc, char **argv);
	bool starts; /* runs a program, which no limit of ours may bind: no --max-memory */
};

/* The first line of many details. */
#define CMD_TRACE "TRACE is a directory that `whyoom run` made, or one file of it.\n"

/* The table: defined in main.c, NULL-terminated, in the order of `whyoom --help`. */
extern const struct command *const cmd_table[];

#define COMMAND(name) extern const struct command cmd_##name;
#include "cmd/commands.def"
#undef COMMAND

/* Print `whyoom NAME --help`, or `whyoom --help` for NULL. */
void cmd_help(const struct command *command, FILE *out);

/* Print "whyoom NAME: words" and where to find help; returns CMD_USAGE. */
int cmd_usage(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Report what getopt_long() does not know: ':' an option without its value, else an unknown option.
 * Returns CMD_USAGE. */
int cmd_stray(const struct command *command, int opt, const char *word);

/* Parse optarg, the value of an option, as a whole number from `least` to UINT32_MAX. 0, or
 * CMD_USAGE after telling the user. */
int cmd_number(const struct command *command, const char *option, uint64_t least, uint64_t *out);

/* Return 0 if getopt_long() left an argument (optind); else ask for a trace and return
 * CMD_USAGE. */
int cmd_wants_trace(const struct command *command, int argc);

/* Print "whyoom: words"; returns CMD_ERROR. */
int cmd_error(const struct err *err);

/* Return the command whose name resembles `word` most, or NULL if none does. */
const char *cmd_suggest(const char *word);

#endif
