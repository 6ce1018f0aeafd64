/* scratch.h - a directory on a disk for one test, and files in it. Failures end the test. */
#ifndef TESTS_UNIT_CMD_SCRATCH_H
#define TESTS_UNIT_CMD_SCRATCH_H

#include <stdbool.h>

/* cmocka's setup and teardown: make the directory; remove it with its contents. */
int scratch_setup(void **state);
int scratch_teardown(void **state);
#define scratch_test(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

/* Return the path of a name in the directory, or of itself (""); one of sixteen buffers, in
 * turn. */
const char *scratch(const char *name);
/* Write a file and its directories; return its path. */
const char *scratch_file(const char *name, const char *text);
const char *scratch_bytes(const char *name, const void *bytes, unsigned long count);
const char *scratch_dir(const char *name);
/* Return a file's text, in one of four buffers; NULL: there is no such file. */
const char *scratch_read(const char *path);
/* Return the number of names in a directory. */
unsigned scratch_names(const char *path);
bool scratch_has(const char *name);

#endif
