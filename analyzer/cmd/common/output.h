/*
 * output.h - the options that say where a command's result goes and how it looks, the same for
 * every command that has one.
 */
#ifndef ANALYZER_CMD_OUTPUT_H
#define ANALYZER_CMD_OUTPUT_H

#include "cmd/cmd.h"
#include "util/new_file.h"
#include "util/text/str.h"

struct output {
	const char *path; /* NULL or "-": stdout */
	const struct format *format;
	bool verbose, native; /* whole stacks; the interpreter's and libc's own frames, too */
};
#define OUTPUT_DEFAULT                                                                             \
	{                                                                                          \
		.format = &format_text                                                             \
	}

/* Rows for getopt_long(). A command whose result has stacks adds the others. */
enum { OUTPUT_FORMAT = 0x1000, OUTPUT_NATIVE };
#define OUTPUT_OPTIONS                                                                             \
	{"format", required_argument, NULL, OUTPUT_FORMAT},                                        \
	    {"output", required_argument, NULL, 'o'},                                              \
	{                                                                                          \
		"help", no_argument, NULL, 'h'                                                     \
	}
#define OUTPUT_VERBOSE                                                                             \
	{                                                                                          \
		"verbose", no_argument, NULL, 'v'                                                  \
	}
#define OUTPUT_STACKS                                                                              \
	OUTPUT_VERBOSE,                                                                            \
	{                                                                                          \
		"native", no_argument, NULL, OUTPUT_NATIVE                                         \
	}
#define OUTPUT_SHORT ":o:h"

/* Takes an option that getopt_long() returned. 0; -1: printed the help, and nothing is left to do;
 * CMD_USAGE: it is none of these, or its value is wrong, and the user was told. */
int output_option(const struct command *command, int opt, char *const *argv, struct output *output);

/* The style for where the result goes: no colours in a file. */
struct report_style output_style(const struct output *output);

/* Where a result that is too large for memory goes: to stdout (path NULL or "-"), to what is no
 * regular file as it is written, or to a new file that appears whole at the commit or not at all,
 * also when a signal ends the command. */
struct output_stream {
	int fd;
	const char *path; /* of the file being written, under its temporary name; NULL: no file */
	struct new_file file; /* private, as `target` */
	const char *target;
};
/* 0; negative errno with err. Then call one of the two below. */
int output_begin(struct output_stream *s, const char *path, struct err *err);
/* 0; negative errno with err: the target is unchanged. */
int output_commit(struct output_stream *s, struct err *err);
void output_abort(struct output_stream *s);

/* Writes the text to stdout (path NULL or "-") or to a file, which appears whole or not at all. 0;
 * negative errno with err: the file, if there was one, is unchanged. */
int output_write(const struct str *text, const char *path, struct err *err);

#endif
