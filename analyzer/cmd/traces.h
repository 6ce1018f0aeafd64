/*
 * traces.h - the TRACE arguments of a command, opened as one set.
 */
#ifndef ANALYZER_CMD_TRACES_H
#define ANALYZER_CMD_TRACES_H

#include "trace/trace.h"

struct traces {
	struct trace_set set; /* all images; the first supervisor */
	struct trace_set *parts;
	size_t count;
};

/* 0; negative errno with err. */
int traces_open(struct traces *t, char *const *paths, size_t count, struct err *err);
void traces_close(struct traces *t);

#endif
