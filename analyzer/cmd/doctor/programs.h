/*
 * programs.h - for `whyoom doctor`: the program that shall be recorded, Python, and what else is
 * preloaded. Reads files; runs nothing. One thread.
 */
#ifndef ANALYZER_CMD_DOCTOR_PROGRAMS_H
#define ANALYZER_CMD_DOCTOR_PROGRAMS_H

#include "cmd/run/program.h"
#include "report/diagnosis.h"

/* Find what `command` (NULL-terminated, not empty) really runs: as `whyoom run` does, and through
 * env(1), on the command line and on a script's first line. */
void doctor_resolve(char *const *command, struct run_program *out);

/* Can it be recorded? */
void doctor_program(struct diagnosis *d, const char *name, const struct run_program *program);

/* CPython: that of the program, if it is one, or (NULL) those of $PATH. Adds nothing if there is
 * none. */
void doctor_python(struct diagnosis *d, const struct run_program *program);

/* Return the minor version of CPython 3 that an interpreter's resolved path tells, in *kind 't'
 * (free threading), 'd' (debugging) or 0; -1: it is no CPython 3, or does not tell. */
int doctor_python_version(const char *path, char *kind);

/* What LD_PRELOAD (`value`, may be NULL) and /etc/ld.so.preload below `root` hold. `library`: ours,
 * or NULL. */
void doctor_preload(struct diagnosis *d, const char *root, const char *value, const char *library);

#endif
