/*
 * simgpu.h - what processes on a simulated GPU share, by the name that docs/simgpu.md gives it.
 */
#ifndef ANALYZER_UTIL_SIMGPU_H
#define ANALYZER_UTIL_SIMGPU_H

#define SIMGPU_PATH 128

/* The file that it is. Returns `path`. */
const char *simgpu_path(const char *machine, char path[SIMGPU_PATH]);

/* A machine that was named stays when its last process has gone: whoever named it takes it away. Of
 * this user's; none of that name is no error. */
void simgpu_forget(const char *machine);

#endif
