/*
 * output.h - where a command's result goes: stdout, or a file that appears whole or not at all.
 */
#ifndef ANALYZER_CMD_OUTPUT_H
#define ANALYZER_CMD_OUTPUT_H

#include "util/text/err.h"
#include "util/text/str.h"

/* `path` NULL or "-": stdout. 0; negative errno with err: the file, if any, is as it was. */
int output_write(const struct str *text, const char *path, struct err *err);

#endif
