/*
 * log.h - the log that a command was given, explained.
 */
#ifndef ANALYZER_CMD_LOG_H
#define ANALYZER_CMD_LOG_H

#include "explain/explain.h"

struct log {
	struct knowledge *knowledge;
	struct explanation explanation; /* borrows from the knowledge */
	bool read;
};

/* Explain the file, or stdin for NULL and "-". 0; negative errno with err. Call log_close() after
 * both. */
int log_open(struct log *log, const char *path, struct err *err);
void log_close(struct log *log);

#endif
