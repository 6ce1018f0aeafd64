/*
 * simgpu.h - what processes on a simulated GPU share, by the name that docs/simgpu.md gives it.
 */
#ifndef ANALYZER_UTIL_SIMGPU_H
#define ANALYZER_UTIL_SIMGPU_H

/* A machine that was named stays when its last process has gone: whoever named it takes it away. Of
 * this user's; none of that name is no error. */
void simgpu_forget(const char *machine);

#endif
