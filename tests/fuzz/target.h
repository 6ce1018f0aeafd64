/* target.h - what the fuzz targets share: a place for files, and the commands as main() calls
 * them. */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Quiet: nothing that the analyzer prints is looked at. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* The analyzer's clock starts again: at the beginning of each input. */
void still_begin(void);
/* A name under which the bytes can be read until the next call. */
const char *target_file(const uint8_t *data, size_t bytes);
/* Writes the traces that the bytes are (sparse.h) into a directory, and lets the command that they
 * name read it. */
void target_traces(const uint8_t *data, size_t bytes);
/* One command on whatever there is: words, ended by NULL, of which "*" is the path. */
void target_run(const char *const *words, const char *path);

#endif
