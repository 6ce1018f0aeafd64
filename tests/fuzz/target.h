/* target.h - shared by the fuzz targets: a directory for files, and the commands as main() calls
 * them. */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Quiet: the analyzer's output is dropped. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Restart the analyzer's clock: at the beginning of each input. */
void still_begin(void);
/* Return a name under which the bytes can be read until the next call. */
const char *target_file(const uint8_t *data, size_t bytes);
/* Write the traces that the bytes hold (sparse.h) into a directory, and run their command on it. */
void target_traces(const uint8_t *data, size_t bytes);
/* Run one command: words, ended by NULL, of which "*" is the path. */
void target_run(const char *const *words, const char *path);

#endif
