/*
 * scratch.h - a directory for one test, on a disk, and files in it. Failures end the test.
 */
#ifndef TESTS_UNIT_CMD_SCRATCH_H
#define TESTS_UNIT_CMD_SCRATCH_H

#include <stdbool.h>

/* cmocka's setup and teardown: makes it; removes it with all that is in it. */
int scratch_setup(void **state);
int scratch_teardown(void **state);
#define scratch_test(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

/* The path of a name in it, or of itself (""); one of sixteen buffers, in turn. */
const char *scratch(const char *name);
/* Writes a file, whose directories are made; returns its path. */
const char *scratch_file(const char *name, const char *text);
const char *scratch_bytes(const char *name, const void *bytes, unsigned long count);
const char *scratch_dir(const char *name);
/* A file's text, in one of four buffers; NULL: there is no such file. */
const char *scratch_read(const char *path);
/* How many names a directory holds. */
unsigned scratch_names(const char *path);
bool scratch_has(const char *name);

#endif
