/*
 * traces.h - the TRACE arguments of a command, opened as one set.
 */
#ifndef ANALYZER_CMD_TRACES_H
#define ANALYZER_CMD_TRACES_H

#include <limits.h>

#include "trace/trace.h"

struct traces {
	struct trace_set set; /* all images; the first supervisor */
	struct trace_set *parts;
	size_t count;
};

/* What a command does with the TRACE arguments that follow its options (optind): opens them, lets
 * `show` answer, and says what went wrong. `parsed` is what its parser of options returned: 0, a
 * status, or negative when there is nothing left to do. Returns the command's status. */
int traces_show(int parsed, int argc, char **argv,
    int (*show)(const struct trace_set *set, const void *request, struct err *err),
    const void *request);

/* Find the trace that a recorded process writes: it has mapped it. 0; negative errno with err. */
int traces_of_process(const char *pid, char path[PATH_MAX], struct err *err);

/* Open them. A path that does not exist and is a number is a process. 0; negative errno with err.
 */
int traces_open(struct traces *t, char *const *paths, size_t count, struct err *err);
void traces_close(struct traces *t);

#endif
