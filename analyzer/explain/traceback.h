/*
 * traceback.h - the Python traceback before a message, and the known roles of its functions.
 */
#ifndef ANALYZER_EXPLAIN_TRACEBACK_H
#define ANALYZER_EXPLAIN_TRACEBACK_H

#include <stddef.h>
#include <stdint.h>

#include "knowledge/knowledge.h"
#include "util/arena.h"

struct traceback_frame {
	const char *function, *file; /* function NULL: no such frame */
	uint32_t line;
	const struct knowledge_framework *framework;
};

struct traceback {
	size_t frames; /* frames read */
	/* By role, the innermost frame that has it. */
	struct traceback_frame roles[ROLE_COUNT];
	/* The innermost frame of a known framework, and the innermost one of none: the user's. */
	struct traceback_frame framework, own;
};

/* Read the last traceback of the text, whatever a logger wrote before each line. 0 or -ENOMEM. */
int traceback_read(struct traceback *out, const char *text, size_t bytes,
    const struct knowledge *knowledge, struct arena *arena);

#endif
