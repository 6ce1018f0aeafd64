/*
 * program.h - looks at the program that is to be run, before it runs: which file execvp() would
 * take, and whether a preloaded library can see into it. Only looks; errors are left to exec.
 */
#ifndef ANALYZER_CMD_RUN_PROGRAM_H
#define ANALYZER_CMD_RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

enum run_program_kind {
	RUN_PROGRAM_SEEN, /* dynamic, for this machine's C library */
	RUN_PROGRAM_STATIC, /* no dynamic loader: nothing is preloaded; what it starts may be seen
			     */
	RUN_PROGRAM_MUSL, /* its loader would refuse to start with our library */
	RUN_PROGRAM_SETUID, /* the loader ignores LD_PRELOAD */
	RUN_PROGRAM_ASAN, /* a sanitizer insists on being first, and replaces malloc itself */
	RUN_PROGRAM_OTHER, /* for another kind of machine (32 bit, an emulator's) */
};

struct run_program {
	char path[PATH_MAX]; /* what exec would be given, "" when there is none */
	char file[PATH_MAX]; /* the ELF file that runs it: a script's interpreter */
	enum run_program_kind kind;
	int error; /* errno of the search: ENOENT, EACCES, 0 found */
};

/* `name` as a shell would take it, $PATH searched as execvp() does. */
void run_program_look(const char *name, struct run_program *out);

/* May our library be put in front of it? */
bool run_program_preloadable(enum run_program_kind kind);

/* A sentence for the user on what cannot be seen, NULL for SEEN. */
const char *run_program_warning(enum run_program_kind kind);

#endif
