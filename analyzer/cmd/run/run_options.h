/*
 * run_options.h - the flags of `whyoom run`: one for each WHYOOM_* variable of options.def, and its
 * own. A flag wins over the variable, the variable over the default.
 */
#ifndef ANALYZER_CMD_RUN_OPTIONS_H
#define ANALYZER_CMD_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "util/text/err.h"
#include "util/text/str.h"

#define OPTION(name, type, value, help) RUN_OPTION_##name,
#define OPTION_CHOICE(name, value, choices, help) RUN_OPTION_##name,
enum run_option {
#include "whyoom/options.def"
	RUN_OPTIONS
};
#undef OPTION
#undef OPTION_CHOICE

struct run_options {
	/* As the library reads them (flags 0 or 1, sizes in bytes); NULL: no flag was given. Owned.
	 */
	char *given[RUN_OPTIONS];
	bool python_objects;
	bool nvtx; /* record NVTX's ranges */
	const char *html; /* the report as a page goes there, within argv; NULL: none */
	const char *termination_log; /* within argv; NULL: the container's */
	const char *simgpu; /* which simulated devices, within argv; NULL: none */
	bool help;
	char **program; /* within argv, NULL-terminated */
};

/* Parse the arguments; argv[0] is "run". 0; -EINVAL with err: wrong usage; -ENOMEM. */
int run_options_parse(int argc, char **argv, struct run_options *out, struct err *err);
/* Parse the flag argv[*i] alone, and step over a value in the next argument. Returns as
 * run_options_parse(). */
int run_options_take(int argc, char **argv, int *i, struct run_options *out, struct err *err);
/* Check what flags mean together. Returns as run_options_parse(). */
int run_options_check(const struct run_options *options, struct err *err);
void run_options_fini(struct run_options *options);

/* Returns the value of the flag, else of the environment, else the default. */
const char *run_option_text(const struct run_options *options, enum run_option option);
bool run_option_flag(const struct run_options *options, enum run_option option);

/* Set the given options, and what other flags need, in the environment. 0, -ENOMEM. */
int run_options_export(const struct run_options *options);

/* Append the flags and the variables that are set, for a process that runs already: "NAME=VALUE",
 * each with a NUL. The directory is `dir`. */
void run_options_settings(const struct run_options *options, const char *dir, struct str *out);

void run_options_help(FILE *out);
/* The same without what makes no sense for a process that runs already. */
void run_options_help_attach(FILE *out);

#endif
