/*
 * library.h - finds libwhyoom.so and the files beside it, and puts it in front of LD_PRELOAD.
 */
#ifndef ANALYZER_CMD_RUN_LIBRARY_H
#define ANALYZER_CMD_RUN_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

#include "util/text/err.h"

/* Find the library beside a program: as installed, as unpacked from the tarball, or in the build
 * tree. `program` NULL: this one. 0; -ENOENT; -EINVAL: LD_PRELOAD cannot hold the path. */
int run_library_find(const char *program, char path[PATH_MAX], struct err *err);

/* Find the simulated GPU's library beside it. Returns as run_library_find(). */
int run_library_simgpu(const char *library, char path[PATH_MAX], struct err *err);

/* Find the helper that samples GPUs, beside the library. False: it is missing. */
bool run_library_nvml(const char *library, char path[PATH_MAX]);

/* Find the program that runs a replay, beside the library. False: it is missing. */
bool run_library_player(const char *library, char path[PATH_MAX]);

/* Find the program that replays on a GPU's driver, beside the library. False: it is missing. */
bool run_library_device_player(const char *library, char path[PATH_MAX]);

/* Find the Python program that replays on PyTorch's allocator, among the data. 0, or -ENOENT. */
int run_library_through(char path[PATH_MAX], struct err *err);

/* Find the library that NVTX loads, beside it. Returns as run_library_find(). */
int run_library_nvtx(const char *library, char path[PATH_MAX], struct err *err);

/* Returns LD_PRELOAD with the path in front of its old value, for free(); NULL: out of memory. */
char *run_library_preload(const char *path, const char *before);

#endif
