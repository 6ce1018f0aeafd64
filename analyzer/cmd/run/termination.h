/*
 * termination.h - the verdict where an orchestrator reads a container's end: the termination log of
 * Kubernetes, a file whose last 4 KiB the kubelet shows as the message of the ended container. It
 * is written in place, since it is a mount, and is whole at each moment. One thread.
 */
#ifndef ANALYZER_CMD_RUN_TERMINATION_H
#define ANALYZER_CMD_RUN_TERMINATION_H

#include <stdbool.h>

#include "util/text/err.h"

struct termination {
	const char *path; /* NULL: there is none, and nothing is written */
	bool given; /* by the user: what is in the file is replaced */
};

/* Find the file. `given`: the user's path, or NULL for the container's, which counts if it is a
 * regular file that is empty and writable. 0; negative errno with err: the given one cannot be
 * written. In both cases *out is set. */
int termination_find(const char *given, struct termination *out, struct err *err);

/* Write one line of text without its end. The container's file is left alone if the program wrote
 * there itself. `earlier`: the text is about the run before, and any later text replaces it. 0;
 * negative errno with err. */
int termination_write(const struct termination *t, const char *text, bool earlier, struct err *err);

/* Take back a text about the run before: this run's end is another story. */
void termination_forget_earlier(const struct termination *t);

#endif
