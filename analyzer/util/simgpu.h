/*
 * simgpu.h - the file that processes on one simulated GPU share: see docs/simgpu.md.
 */
#ifndef ANALYZER_UTIL_SIMGPU_H
#define ANALYZER_UTIL_SIMGPU_H

#define SIMGPU_PATH 128

/* Format the path of the file. Returns `path`. */
const char *simgpu_path(const char *machine, char path[SIMGPU_PATH]);

/* Remove this user's simulated machine of that name, which outlives its last process. No such
 * machine is no error. */
void simgpu_forget(const char *machine);

#endif
