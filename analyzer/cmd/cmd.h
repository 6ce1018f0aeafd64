/*
 * cmd.h - what a subcommand is, and the few things that all of them say the same way.
 *
 * A subcommand is one file, cmd/X.c, that defines `const struct command cmd_X`, a line here and a
 * line in the table of main.c. Its main() gets argv from its own name on (argv[0] is "X") and
 * returns the exit status. It writes results to stdout, everything else to stderr; main.c checks
 * that stdout took it all.
 */
#ifndef ANALYZER_CMD_CMD_H
#define ANALYZER_CMD_CMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

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
	const char
	    *details; /* the rest of `whyoom NAME --help`: options, a line each, "\n" at the end */
	void (*more)(FILE *out); /* NULL, or prints what is made from a table, after details */
	int (*main)(int argc, char **argv);
	bool starts; /* somebody's program, for which no limit of ours may hold: no --max-memory */
};

/* The table: defined in main.c, NULL-terminated, in the order of `whyoom --help`. */
extern const struct command *const cmd_table[];

/* One a line. */
extern const struct command cmd_check;
extern const struct command cmd_ctl;
extern const struct command cmd_explain;
extern const struct command cmd_map;
extern const struct command cmd_pack;
extern const struct command cmd_reduce;
extern const struct command cmd_replay;
extern const struct command cmd_report;
extern const struct command cmd_run;
extern const struct command cmd_sites;
extern const struct command cmd_what_if;

/* `whyoom NAME --help`, and `whyoom --help` for NULL. */
void cmd_help(const struct command *command, FILE *out);

/* Prints "whyoom NAME: words" and where to find help; returns CMD_USAGE. */
int cmd_usage(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What --format takes: 0, or CMD_USAGE and says so. */
int cmd_format(const struct command *command, const char *text, bool *json);

/* For what getopt_long() does not know: ':' an option without its value, else an unknown one.
 * Returns CMD_USAGE. */
int cmd_stray(const struct command *command, int opt, const char *word);

/* Prints "whyoom: words"; returns CMD_ERROR. */
int cmd_error(const struct err *err);

/* The name in the table that `word` was perhaps meant to be, or NULL. */
const char *cmd_suggest(const char *word);

#endif
