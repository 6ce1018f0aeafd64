/*
 * place.h - a directory on a disk for one test, and files in it.
 */
#ifndef UNIT_CMD_PLACE_H
#define UNIT_CMD_PLACE_H

#include <limits.h>
#include <stddef.h>

/* Made at the first call, removed with all that is in it at exit. */
const char *place(void);

/* A path in it; overwritten by the fourth call after. */
const char *place_path(const char *name);

/* Writes a file there, with the directories that its name needs. */
void place_write(const char *name, const void *data, size_t bytes);
void place_text(const char *name, const char *text);

#endif
