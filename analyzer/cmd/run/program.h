/*
 * program.h - examines a program before it runs: which file execvp() would take, and whether a
 * preloaded library can record it. Errors are left to exec.
 */
#ifndef ANALYZER_CMD_RUN_PROGRAM_H
#define ANALYZER_CMD_RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

enum run_program_kind {
	RUN_PROGRAM_SEEN, /* dynamic, for this machine's C library */
	RUN_PROGRAM_STATIC, /* no dynamic loader, so no preloading; its children may be recorded */
	RUN_PROGRAM_MUSL, /* its loader refuses to start with our library */
	RUN_PROGRAM_SETUID, /* or with capabilities of its file: the loader ignores LD_PRELOAD */
	RUN_PROGRAM_ASAN, /* a sanitizer insists on being first, and replaces malloc itself */
	RUN_PROGRAM_OTHER, /* for another kind of machine (32 bit, an emulator's) */
};

struct run_program {
	char path[PATH_MAX]; /* the argument for exec; "": none was found */
	char file[PATH_MAX]; /* the ELF file: for a script, its interpreter */
	char interpreter[256]; /* of the ELF file: the dynamic loader that it names; "": none */
	enum run_program_kind kind;
	int error; /* errno of the search: ENOENT, EACCES, 0 found */
};

/* Examine `name`, which is searched in $PATH as execvp() does. */
void run_program_look(const char *name, struct run_program *out);

/* Can our library be preloaded into it? */
bool run_program_preloadable(enum run_program_kind kind);

/* Returns a warning for the user, after the file's name; NULL for SEEN. */
const char *run_program_warning(enum run_program_kind kind);

#endif
