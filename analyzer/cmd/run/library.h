/*
 * library.h - where libwhyoom.so is, seen from the program that runs now, and LD_PRELOAD with
 * it in front.
 */
#ifndef ANALYZER_CMD_RUN_LIBRARY_H
#define ANALYZER_CMD_RUN_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

#include "util/text/err.h"

/* Looks beside the program: as installed, as unpacked from the tarball, and in the build tree.
 * `program` NULL: this one. 0; -ENOENT, or -EINVAL for a path that LD_PRELOAD cannot hold. */
int run_library_find(const char *program, char path[PATH_MAX], struct err *err);

/* The simulated device's library, which lies beside that one. Results as above. */
int run_library_simgpu(const char *library, char path[PATH_MAX], struct err *err);

/* The program that asks NVIDIA's management library, which lies there too. False: it does not. */
bool run_library_nvml(const char *library, char path[PATH_MAX]);

/* The program that performs a replay, which lies there too. False: it does not. */
bool run_library_player(const char *library, char path[PATH_MAX]);

/* The program that asks a device's driver in a replay, which lies there too. False: it does not. */
bool run_library_device_player(const char *library, char path[PATH_MAX]);

/* The Python program that asks PyTorch's own allocator, which lies with the data. 0, or -ENOENT. */
int run_library_through(char path[PATH_MAX], struct err *err);

/* What NVTX is to load, which lies there too. Results as above. */
int run_library_nvtx(const char *library, char path[PATH_MAX], struct err *err);

/* The new value of LD_PRELOAD, to be freed; NULL: out of memory. What was there follows. */
char *run_library_preload(const char *path, const char *before);

#endif
