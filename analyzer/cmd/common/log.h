/*
 * log.h - the log that a command was given.
 */
#ifndef ANALYZER_CMD_LOG_H
#define ANALYZER_CMD_LOG_H

#include "explain/explain.h"

/* Explains the file, or stdin for NULL and "-". 0; negative errno with err. */
int log_read(
    const char *path, const struct knowledge *knowledge, struct explanation *out, struct err *err);

#endif
